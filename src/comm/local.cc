#include "comm/local.h"

#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <thread>

#include "base/check.h"
#include "base/error.h"
#include "comm/local_group.h"
#include "comm/reduce.h"

namespace assay::comm {
namespace {

class SingleRank : public Communicator {
 public:
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int ranks() const override { return 1; }
  void abort(const base::Error&) override {}  // no other ranks

 protected:
  base::Result<void> run(const Call& call, const void* in, void* out, Stream) override {
    if (in != out && call.count > 0) std::memcpy(out, in, static_cast<std::size_t>(call.bytes()));
    return {};
  }
};

class LocalRank : public Communicator {
 public:
  LocalRank(std::shared_ptr<LocalGroup> group, int rank) : group_(std::move(group)), rank_(rank) {}
  ~LocalRank() override {
    group_->abort(base::failed_error(fmt::format("rank {}", rank_), "left the group"));
  }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int ranks() const override { return group_->ranks(); }
  void abort(const base::Error& why) override { group_->abort(why); }

 protected:
  base::Result<void> run(const Call& call, const void* in, void* out, Stream) override {
    ASSAY_CHECK(call.root >= 0 && call.root < ranks(), "the root must be one of the ranks");
    ASSAY_TRY_VOID(group_->begin(
        rank_, {call, static_cast<const std::byte*>(in), static_cast<std::byte*>(out)}));
    exchange(call);
    group_->end();
    return {};
  }

 private:
  // Every output byte is written by exactly one rank, which is also the only reader of the bytes it
  // replaces, so in-place calls need no further synchronisation.
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

  // Reduces this rank's share of the elements and copies it to all ranks.
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
  [[nodiscard]] const PostedCall& of(int rank) const { return group_->of(rank); }
  [[nodiscard]] std::byte* mine() const { return of(rank_).out; }

  std::shared_ptr<LocalGroup> group_;
  int rank_;
};

}  // namespace

std::unique_ptr<Communicator> make_single_rank() {
  return std::make_unique<SingleRank>();
}

std::vector<std::unique_ptr<Communicator>> make_local(int ranks, const LocalOptions& options) {
  const auto group = std::make_shared<LocalGroup>(ranks, options.timeout);
  std::vector<std::unique_ptr<Communicator>> list;
  for (int rank = 0; rank < ranks; ++rank) {
    list.push_back(std::make_unique<LocalRank>(group, rank));
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
        own.reset();  // fails ranks that still wait for this one
      });
    }
  }
  // An aborted rank returns the reason of the abort, so any error is the first one.
  for (base::Result<void>& result : results) ASSAY_TRY_VOID(std::move(result));
  return {};
}

}  // namespace assay::comm
