// Requests: keys and barriers of a job, and who waits for them. Part of rank 0's hub; pure like it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "control/wire.h"

namespace assay::control {

// A message for a rank.
struct Outgoing {
  int rank;
  Message message;
};

// A request that a rank has made.
struct Waiter {
  int rank;
  std::uint64_t id;
  std::int64_t since_ns;
  std::int64_t deadline_ns;
};

struct RequestLimits {
  std::size_t store_bytes = std::size_t{256} << 20;
  std::size_t waiting_per_rank = 4096;
};

class Requests {
 public:
  // Answers are added to `outgoing`, which must outlive it.
  Requests(int ranks, const RequestLimits& limits, std::vector<Outgoing>& outgoing);

  void put(const Waiter& from, const std::string& key, const std::string& value);
  void get(const Waiter& from, const std::string& key);
  void barrier(const Waiter& from, const std::string& name);
  void refuse(const Waiter& waiter, const base::Error& why);

  // The rank has left: nobody need wait at a barrier any more, now or later.
  void rank_left(int rank);
  // The rank is gone and wants no answers.
  void drop(int rank);
  // Nobody wants answers any more.
  void drop_all();

  void expire(std::int64_t now_ns);
  // expire() has nothing to do before.
  [[nodiscard]] std::int64_t next_deadline_ns() const { return next_deadline_ns_; }

 private:
  using Waiters = std::map<std::string, std::vector<Waiter>>;

  void answer(const Waiter& waiter, const std::string& value);
  // False and an answer if the rank waits for too much already.
  bool may_wait(const Waiter& from, const std::string& where);
  void end_barrier(const std::string& name, const std::vector<Waiter>& waiters);
  [[nodiscard]] base::Error late_error(bool is_barrier, const std::string& key, const Waiter& late,
                                       const std::vector<Waiter>& waiters) const;

  RequestLimits limits_;
  std::vector<Outgoing>& outgoing_;
  std::unordered_map<std::string, std::string> store_;
  std::size_t store_bytes_ = 0;
  Waiters gets_;
  Waiters barriers_;
  std::vector<std::size_t> waiting_;  // requests without an answer, by rank
  std::optional<int> left_;           // a rank that has left
  std::int64_t next_deadline_ns_;
};

// "60 s", "0.25 s"
std::string duration_text(std::int64_t ns);
// "rank 3 of 8 has", "ranks 1, 3-5 of 8 have"
std::string ranks_have(const std::vector<int>& ranks, std::size_t of);

}  // namespace assay::control
