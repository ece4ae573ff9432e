// The sums of Communicator, made of copies: each rank receives every rank's values of its own share
// and folds them in rank order. They carry the name of the sum as their call, so that ranks that
// disagree are told so in the caller's words.
#include <cstring>
#include <vector>

#include "comm/communicator.h"
#include "comm/reduce.h"

namespace assay::comm {
namespace {

// Elements [first(rank), first(rank + 1)) are a rank's share.
struct Shares {
  Shares(std::int64_t count, int ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      first.push_back(count * rank / ranks);
      size.push_back(count * (rank + 1) / ranks - first.back());
    }
  }
  std::vector<std::int64_t> first, size;
};

// Every rank's values of one share, one rank after the other.
class Received {
 public:
  Received(std::int64_t size, int ranks, Dtype type)
      : size_(size),
        type_(type),
        data_(new std::byte[static_cast<std::size_t>(
            std::max<std::int64_t>(size * ranks * bytes_of(type), 1))]) {
    for (int rank = 0; rank < ranks; ++rank) {
      offsets.push_back(size * rank);
      sizes.push_back(size);
      from_.push_back(data_.get() + offsets.back() * bytes_of(type));
    }
  }
  [[nodiscard]] std::byte* data() { return data_.get(); }
  void fold_into(std::byte* out, Reduction reduction) const {
    if (size_ > 0) reduce(from_, out, size_, type_, reduction);
  }

  std::vector<std::int64_t> offsets, sizes;

 private:
  std::int64_t size_;
  Dtype type_;
  std::unique_ptr<std::byte[]> data_;
  std::vector<const std::byte*> from_;
};

}  // namespace

base::Result<void> Communicator::all_reduce(const void* in, void* out, std::int64_t count,
                                            Dtype type, Reduction reduction) {
  const Call call = {Collective::kAllReduce, count, type, reduction};
  const Shares shares(count, ranks());
  const auto me = static_cast<std::size_t>(rank());
  const auto all = static_cast<std::size_t>(ranks());
  Received received(shares.size[me], ranks(), type);
  ASSAY_TRY_VOID(run(call, in, received.data(), {},
                     {shares.size, shares.first, received.sizes, received.offsets}));
  received.fold_into(static_cast<std::byte*>(out) + shares.first[me] * bytes_of(type), reduction);
  const std::vector<std::int64_t> size(all, shares.size[me]);
  const std::vector<std::int64_t> first(all, shares.first[me]);
  return run(call, out, out, {}, {size, first, shares.size, shares.first});
}

base::Result<void> Communicator::reduce_scatter(const void* in, void* out, std::int64_t count,
                                                Dtype type, Reduction reduction) {
  const Call call = {Collective::kReduceScatter, count, type, reduction};
  Received received(count, ranks(), type);
  ASSAY_TRY_VOID(run(call, in, received.data(), {},
                     {received.sizes, received.offsets, received.sizes, received.offsets}));
  received.fold_into(static_cast<std::byte*>(out), reduction);
  return {};
}

}  // namespace assay::comm
