// LocalGroup: the state shared by ranks of one process. Each rank posts a call and its buffers
// without waiting. Once all participating ranks have posted the same call, its segments are copied
// by the ranks that wait for it: a waiting rank copies what it receives, then what it sends and
// nobody has copied yet, so that ranks may wait for their calls in different orders. Waiting is
// bounded: a rank that is destroyed, aborts or does not arrive in time fails the calls of all
// others.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "comm/transfers.h"

namespace assay::comm {

class LocalGroup {
 public:
  // `names`: the ranks' numbers in error messages, which are those of the parent group.
  LocalGroup(std::vector<int> names, std::chrono::milliseconds timeout);

  [[nodiscard]] int ranks() const { return static_cast<int>(names_.size()); }
  // Returns a ticket for `finish`.
  base::Result<std::uint64_t> post(int rank, const Call& call, Transfers transfers);
  // Blocks until the call is complete on this rank and no rank uses its buffers any more. An error
  // is permanent; after one, buffers are no longer accessed.
  base::Result<void> finish(int rank, std::uint64_t ticket);
  // The rank will post no more calls: completes those that all ranks have posted, fails those that
  // would need it.
  void leave(int rank);
  // Called by a rank: fails all current and future calls, also those of subgroups, with the first
  // reason given. After this nobody accesses the rank's buffers.
  void abort(int rank, const base::Error& why);
  // The group of these ranks; every member gets the same one.
  std::shared_ptr<LocalGroup> subgroup(const std::vector<int>& members, std::int64_t id);

 private:
  enum class Progress : std::uint8_t { kTodo, kCopying, kDone };
  struct PostedCall {
    Call call;
    Transfers transfers;
    std::vector<std::size_t> copies;  // indices of those it receives, then of those it sends
  };
  struct Copy {
    const std::byte* source = nullptr;
    std::byte* target = nullptr;
    std::size_t bytes = 0;
    Progress progress = Progress::kTodo;
  };
  // One call of all ranks, or of the two ranks of a send and its receive.
  struct GroupCall {
    std::size_t participants = 0;
    std::map<int, PostedCall> posts;  // by rank
    bool agreed = false;              // all ranks have posted the same call
    std::vector<Copy> copies;         // filled once agreed
    std::size_t finished = 0;
  };
  struct Subgroup {
    std::weak_ptr<LocalGroup> group;
    std::shared_ptr<LocalGroup> held;  // until every member has taken it
    std::size_t missing = 0;
  };
  // Sender, receiver and number of the call; -1, -1 for collectives.
  using Key = std::tuple<int, int, std::uint64_t>;

  Key next_key(int rank, const Call& call);
  base::Result<void> match(GroupCall& shared) const;
  [[nodiscard]] std::optional<base::Error> disagreement(const GroupCall& shared) const;
  [[nodiscard]] base::Error timed_out(const GroupCall& shared, const Key& key,
                                      const Call& call) const;
  void copy_all(GroupCall& shared, int rank, std::unique_lock<std::mutex>& lock);
  [[nodiscard]] bool takes_part(int rank, const Key& key) const;
  [[nodiscard]] std::optional<int> missing_rank(const GroupCall& shared, const Key& key) const;
  void fail(const base::Error& why);
  void abort_all(const base::Error& why);
  void withdraw(int rank, std::unique_lock<std::mutex>& lock);
  [[nodiscard]] std::string name(int rank) const;

  const std::chrono::milliseconds timeout_;
  const std::vector<int> names_;

  std::mutex mutex_;  // guards everything below
  std::condition_variable changed_;
  std::map<std::pair<int, Key>, std::uint64_t> issued_;  // by rank and channel: calls so far
  std::map<Key, GroupCall> calls_;
  std::vector<std::map<std::uint64_t, Key>> tickets_;  // by rank
  std::uint64_t last_ticket_ = 0;
  std::map<std::int64_t, Subgroup> subgroups_;
  std::set<int> left_;
  std::optional<base::Error> failure_;
  bool aborted_ = false;  // otherwise only this group has failed, not its subgroups
};

}  // namespace assay::comm
