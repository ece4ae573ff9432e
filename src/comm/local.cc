#include "comm/local.h"

#include <algorithm>
#include <numeric>
#include <thread>

#include "comm/local_group.h"
#include "comm/transfers.h"

namespace assay::comm {
namespace {

class SingleRank : public Communicator {
 public:
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int ranks() const override { return 1; }
  void abort(const base::Error&) override {}  // no other ranks
  base::Result<void> wait(Ticket) override { return {}; }

 protected:
  base::Result<Ticket> start(const Call& call, const void* in, void* out,
                             const AllToAllParts& parts, Stream) override {
    ASSAY_TRY(const Transfers transfers, transfers_of(call, 0, 1, in, out, parts));
    transfers.copy_own();
    return Ticket{};
  }
  base::Result<std::unique_ptr<Communicator>> subgroup(const std::vector<int>&,
                                                       std::int64_t) override {
    return make_single_rank();
  }
  [[nodiscard]] std::int64_t next_group_id() const override { return 0; }
  void set_next_group_id(std::int64_t) override {}
};

class LocalRank : public Communicator {
 public:
  LocalRank(std::shared_ptr<LocalGroup> group, int rank) : group_(std::move(group)), rank_(rank) {}
  ~LocalRank() override { group_->leave(rank_); }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int ranks() const override { return group_->ranks(); }
  void abort(const base::Error& why) override { group_->abort(rank_, why); }
  base::Result<void> wait(Ticket ticket) override { return group_->finish(rank_, ticket.id); }

 protected:
  base::Result<Ticket> start(const Call& call, const void* in, void* out,
                             const AllToAllParts& parts, Stream) override {
    ASSAY_TRY(Transfers transfers, transfers_of(call, rank_, ranks(), in, out, parts));
    transfers.copy_own();
    ASSAY_TRY(const std::uint64_t id, group_->post(rank_, call, std::move(transfers)));
    return Ticket{id};
  }
  base::Result<std::unique_ptr<Communicator>> subgroup(const std::vector<int>& members,
                                                       std::int64_t id) override {
    const auto place = std::ranges::find(members, rank_) - members.begin();
    return std::make_unique<LocalRank>(group_->subgroup(members, id), static_cast<int>(place));
  }
  [[nodiscard]] std::int64_t next_group_id() const override { return next_group_id_; }
  void set_next_group_id(std::int64_t id) override { next_group_id_ = id; }

 private:
  std::shared_ptr<LocalGroup> group_;
  int rank_;
  std::int64_t next_group_id_ = 0;
};

}  // namespace

std::unique_ptr<Communicator> make_single_rank() {
  return std::make_unique<SingleRank>();
}

std::vector<std::unique_ptr<Communicator>> make_local(int ranks, const LocalOptions& options) {
  std::vector<int> names(static_cast<std::size_t>(ranks));
  std::iota(names.begin(), names.end(), 0);
  const auto group = std::make_shared<LocalGroup>(std::move(names), options.timeout);
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
