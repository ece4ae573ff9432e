#include "comm/local.h"

#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <thread>

#include "base/check.h"
#include "base/error.h"
#include "comm/meeting.h"
#include "comm/reduce.h"

namespace assay::comm {
namespace {

class LocalRank : public Communicator {
 public:
  LocalRank(std::shared_ptr<Meeting> meeting, int rank)
      : meeting_(std::move(meeting)), rank_(rank) {}
  ~LocalRank() override {
    meeting_->abort(base::failed_error(fmt::format("rank {}", rank_), "has left the others"));
  }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int ranks() const override { return meeting_->ranks(); }
  void abort(const base::Error& why) override { meeting_->abort(why); }

 protected:
  base::Result<void> run(const Call& call, const void* in, void* out, Stream) override {
    ASSAY_CHECK(call.root >= 0 && call.root < ranks(), "a root is one of the ranks");
    ASSAY_TRY_VOID(meeting_->begin(
        rank_, {call, static_cast<const std::byte*>(in), static_cast<std::byte*>(out)}));
    exchange(call);
    meeting_->end();
    return {};
  }

 private:
  // Every byte is written by one rank, which is also the only one that reads the bytes it replaces:
  // so ranks need not wait for each other while they work in place.
  void exchange(const Call& call) const {
    switch (call.collective) {
      case Collective::kAllReduce:
        return reduce_share(call);
      case Collective::kReduceScatter:
        return reduce_from(call, rank_ * call.count, call.count, {mine()});
      case Collective::kAllGather:
        for (int from = 0; from < ranks(); ++from) {
          copy(call, of(from).in, mine() + from * call.bytes());
        }
        return;
      case Collective::kBroadcast:
        return copy(call, of(call.root).in, mine());
      case Collective::kAllToAll:
        for (int from = 0; from < ranks(); ++from) {
          copy(call, of(from).in + rank_ * call.bytes(), mine() + from * call.bytes());
        }
        return;
      case Collective::kBarrier:
        return;
    }
  }

  // This rank's share of the elements, to everybody.
  void reduce_share(const Call& call) const {
    const std::int64_t first = call.count * rank_ / ranks();
    const std::int64_t last = call.count * (rank_ + 1) / ranks();
    std::vector<std::byte*> to;
    for (int rank = 0; rank < ranks(); ++rank) {
      to.push_back(of(rank).out + first * bytes_of(call.type));
    }
    reduce_from(call, first, last - first, to);
  }

  void reduce_from(const Call& call, std::int64_t first, std::int64_t count,
                   const std::vector<std::byte*>& to) const {
    if (count == 0) return;
    std::vector<const std::byte*> from;
    for (int rank = 0; rank < ranks(); ++rank) {
      from.push_back(of(rank).in + first * bytes_of(call.type));
    }
    reduce(from, to[0], count, call.type, call.reduction);
    for (std::size_t i = 1; i < to.size(); ++i) {
      std::memcpy(to[i], to[0], static_cast<std::size_t>(count * bytes_of(call.type)));
    }
  }

  static void copy(const Call& call, const std::byte* from, std::byte* to) {
    if (from != to && call.count > 0) std::memcpy(to, from, static_cast<std::size_t>(call.bytes()));
  }
  [[nodiscard]] const Brought& of(int rank) const { return meeting_->of(rank); }
  [[nodiscard]] std::byte* mine() const { return of(rank_).out; }

  std::shared_ptr<Meeting> meeting_;
  int rank_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_local(int ranks, const LocalOptions& options) {
  const auto meeting = std::make_shared<Meeting>(ranks, options.patience);
  std::vector<std::unique_ptr<Communicator>> list;
  for (int rank = 0; rank < ranks; ++rank) {
    list.push_back(std::make_unique<LocalRank>(meeting, rank));
  }
  return list;
}

base::Result<void> run_local(int ranks,
                             const std::function<base::Result<void>(Communicator&)>& body,
                             const LocalOptions& options) {
  auto communicators = make_local(ranks, options);
  std::vector<base::Result<void>> results(static_cast<std::size_t>(ranks));
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < communicators.size(); ++i) {
      threads.emplace_back([&body, &result = results[i], &own = communicators[i]] {
        result = body(*own);
        if (!result) own->abort(result.error());
        own.reset();  // whoever still waits for this rank is told
      });
    }
  }
  // A rank that was aborted returns the reason it was given, so any error is the first one.
  for (base::Result<void>& result : results) ASSAY_TRY_VOID(std::move(result));
  return {};
}

}  // namespace assay::comm
