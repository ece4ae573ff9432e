#include "comm/processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"
#include "comm/local.h"
#include "comm/mesh.h"
#include "comm/transfers.h"

namespace assay::comm {
namespace {

constexpr std::uint64_t kWholeJob = 0;  // the id of the first group

// A rank of a group; the mesh below it is shared by all groups of the process.
class ProcessRank : public Communicator {
 public:
  ProcessRank(std::shared_ptr<Mesh> mesh, std::uint64_t id, std::uint64_t parent,
              std::vector<int> members, int rank)
      : mesh_(std::move(mesh)), id_(id), members_(std::move(members)), rank_(rank) {
    mesh_->add_group(id_, parent, members_);
  }
  ~ProcessRank() override { mesh_->leave(id_); }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int ranks() const override { return static_cast<int>(members_.size()); }
  void abort(const base::Error& why) override { mesh_->abort(id_, why); }

  base::Result<void> wait(Ticket ticket) override {
    const auto found = in_flight_.find(ticket.id);
    if (found == in_flight_.end()) {
      return base::fail(base::usage_error(fmt::format("rank {}", members_[at(rank_)]),
                                          "waits for a call that is not in flight"));
    }
    const auto operation = std::move(found->second);
    in_flight_.erase(found);
    return mesh_->wait(operation);
  }

 protected:
  base::Result<Ticket> start(const Call& call, const void* in, void* out,
                             const AllToAllParts& parts, Stream) override {
    ASSAY_TRY(Transfers transfers, transfers_of(call, rank_, ranks(), in, out, parts));
    transfers.copy_own();
    for (Outgoing& segment : transfers.out) segment.peer = members_[at(segment.peer)];
    for (Incoming& segment : transfers.in) segment.peer = members_[at(segment.peer)];
    Call named = call;
    if (call.collective == Collective::kSend || call.collective == Collective::kReceive) {
      named.peer = members_[at(call.peer)];
    }
    ASSAY_TRY(auto operation, mesh_->issue(id_, named, std::move(transfers)));
    in_flight_[++last_ticket_] = std::move(operation);
    return Ticket{last_ticket_};
  }

  base::Result<std::unique_ptr<Communicator>> subgroup(const std::vector<int>& members,
                                                       std::int64_t id) override {
    std::vector<int> named;
    for (const int member : members) named.push_back(members_[at(member)]);
    const auto place = std::ranges::find(members, rank_) - members.begin();
    return std::make_unique<ProcessRank>(mesh_, static_cast<std::uint64_t>(id), id_,
                                         std::move(named), static_cast<int>(place));
  }
  [[nodiscard]] std::int64_t next_group_id() const override { return mesh_->next_group_id(); }
  void set_next_group_id(std::int64_t id) override { mesh_->set_next_group_id(id); }

 private:
  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }

  std::shared_ptr<Mesh> mesh_;
  std::uint64_t id_;
  std::vector<int> members_;  // their ranks in the whole job, by rank here
  int rank_;
  std::uint64_t last_ticket_ = 0;
  std::map<std::uint64_t, std::shared_ptr<Operation>> in_flight_;
};

}  // namespace

base::Result<std::unique_ptr<Communicator>> connect_processes(const ProcessGroupOptions& options,
                                                              KeyValue& store) {
  if (options.ranks < 1 || options.rank < 0 || options.rank >= options.ranks) {
    return base::fail(base::usage_error(fmt::format("rank {}", options.rank),
                                        fmt::format("is not one of {} ranks", options.ranks)));
  }
  if (options.ranks == 1) return make_single_rank();
  ASSAY_TRY(auto sockets, connect_ranks(options, store));
  ASSAY_TRY(auto mesh, Mesh::create(options.rank, std::move(sockets), options.call_timeout));
  std::vector<int> members(static_cast<std::size_t>(options.ranks));
  std::iota(members.begin(), members.end(), 0);
  return std::make_unique<ProcessRank>(std::move(mesh), kWholeJob, kWholeJob, std::move(members),
                                       options.rank);
}

}  // namespace assay::comm
