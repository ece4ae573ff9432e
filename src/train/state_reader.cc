#include "train/state_reader.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>

namespace assay::train {
namespace {

// One read.
struct Piece {
  std::size_t part = 0;
  const StateTensor* tensor = nullptr;
  step::Range elements;
};

// Threads take pieces in order, and read them as slots become free.
class Reader {
 public:
  Reader(const checkpoint::Checkpoint& from, const std::vector<StatePart>& parts,
         std::vector<Piece> pieces, const ReadAhead& ahead)
      : from_(from), parts_(parts), pieces_(std::move(pieces)), slots_(ahead.pieces) {
    const auto threads = std::min(static_cast<std::size_t>(ahead.threads), pieces_.size());
    for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  }
  ~Reader() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // Passes the pieces on, one after the other.
  base::Result<void> give(const TakeState& take) {
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      Slot& slot = slots_[i % slots_.size()];
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return slot.holds == i; });
      }
      ASSAY_TRY_VOID(slot.outcome);
      const Piece& piece = pieces_[i];
      ASSAY_TRY_VOID(take(piece.tensor->view_of(piece.elements), slot.bytes));
      {
        const std::lock_guard lock(mutex_);
        given_ = i + 1;
      }
      changed_.notify_all();
    }
    return {};
  }

 private:
  static constexpr std::size_t kNothing = ~std::size_t{0};
  struct Slot {
    std::size_t holds = kNothing;  // the piece in this slot, once it is read
    base::Result<void> outcome;
    std::vector<std::byte> bytes;
  };

  void work() {
    // Per thread: a set may be used by only one thread.
    std::vector<std::optional<checkpoint::TensorSet>> sets(parts_.size());
    while (true) {
      std::size_t mine = 0;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] {
          return over_ || next_ == pieces_.size() || next_ < given_ + slots_.size();
        });
        if (over_ || next_ == pieces_.size()) return;
        mine = next_++;
      }
      Slot& slot = slots_[mine % slots_.size()];
      slot.outcome = read(pieces_[mine], sets[pieces_[mine].part], slot.bytes);
      {
        const std::lock_guard lock(mutex_);
        slot.holds = mine;
      }
      changed_.notify_all();
    }
  }

  base::Result<void> read(const Piece& piece, std::optional<checkpoint::TensorSet>& set,
                          std::vector<std::byte>& bytes) {
    if (!set) {
      ASSAY_TRY(checkpoint::TensorSet opened, from_.part(parts_[piece.part].name));
      set.emplace(std::move(opened));
    }
    const checkpoint::StoredTensor* stored = set->find(piece.tensor->name);
    bytes.resize(
        static_cast<std::size_t>(piece.elements.count * step::bytes_of(piece.tensor->type)));
    return read_elements(*set, *stored, *piece.tensor, piece.elements, bytes);
  }

  const checkpoint::Checkpoint& from_;
  const std::vector<StatePart>& parts_;
  const std::vector<Piece> pieces_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Slot> slots_;
  std::size_t next_ = 0;   // to be read
  std::size_t given_ = 0;  // pieces passed on, whose slots are free again
  bool over_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

base::Result<void> read_elements(const checkpoint::TensorSet& set,
                                 const checkpoint::StoredTensor& stored, const StateTensor& tensor,
                                 const step::Range& elements, std::span<std::byte> to) {
  constexpr std::int64_t kMostAtOnce = std::int64_t{1} << 20U;  // elements
  const std::int64_t size = checkpoint::dtype_bytes(stored.info.dtype);
  const auto next = [&](std::int64_t count) {
    const std::span<std::byte> some = to.first(static_cast<std::size_t>(count * size));
    to = to.subspan(some.size());
    return some;
  };
  std::vector<std::byte> rows;
  for (const checkpoint::ElementRange& piece : tensor.pieces(elements)) {
    if (!piece.in_runs()) {
      ASSAY_TRY_VOID(set.read(stored, piece.first * size, next(piece.count)));
      continue;
    }
    // Reads some whole rows at a time and extracts what is wanted: reading run by run would make
    // one system call per row.
    const std::int64_t step = std::max<std::int64_t>(1, kMostAtOnce / piece.apart);
    const std::int64_t runs = piece.count / piece.run;
    for (std::int64_t from = 0; from < runs; from += step) {
      const std::int64_t count = std::min(step, runs - from);
      const std::int64_t wanted = (count - 1) * piece.apart + piece.run;
      rows.resize(static_cast<std::size_t>(wanted * size));
      ASSAY_TRY_VOID(set.read(stored, (piece.first + from * piece.apart) * size, rows));
      for (std::int64_t i = 0; i < count; ++i) {
        const std::span<std::byte> run = next(piece.run);
        std::memcpy(run.data(), rows.data() + i * piece.apart * size, run.size());
      }
    }
  }
  return {};
}

base::Result<void> read_state(const checkpoint::Checkpoint& from,
                              const std::vector<StatePart>& parts, const MissingTensor& missing,
                              const TakeState& take, const ReadAhead& ahead) {
  std::vector<Piece> pieces;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    ASSAY_TRY(const checkpoint::TensorSet set, from.part(parts[part].name));
    for (const StateTensor& tensor : parts[part].tensors) {
      const checkpoint::StoredTensor* found = set.find(tensor.name);
      if (found == nullptr || found->info != file_info(tensor)) return base::fail(missing(tensor));
      const std::int64_t most =
          std::max<std::int64_t>(1, ahead.piece_bytes / step::bytes_of(tensor.type));
      for (std::int64_t at = 0; at < tensor.own.count; at += most) {
        pieces.push_back(
            {part, &tensor, {tensor.own.first + at, std::min(most, tensor.own.count - at)}});
      }
    }
  }
  return Reader(from, parts, std::move(pieces), ahead).give(take);
}

}  // namespace assay::train
