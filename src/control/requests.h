// Requests: the keys and barriers of a job, and the ranks waiting for them. Part of rank 0's Hub;
// pure like it.
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
struct OutgoingMessage {
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
  // Answers are appended to `outgoing`, which must outlive this object.
  Requests(int ranks, const RequestLimits& limits, std::vector<OutgoingMessage>& outgoing);

  void put(const Waiter& from, const std::string& key, const std::string& value);
  void get(const Waiter& from, const std::string& key);
  void barrier(const Waiter& from, const std::string& name);
  void refuse(const Waiter& waiter, const base::Error& why);

  // The rank has left: all waits at barriers, current and future, fail.
  void rank_left(int rank);
  // The rank is gone: its requests need no answers.
  void drop(int rank);
  // No request needs an answer any more.
  void drop_all();

  void expire(std::int64_t now_ns);
  // Before this time expire() has nothing to do.
  [[nodiscard]] std::int64_t next_deadline_ns() const { return next_deadline_ns_; }

 private:
  using Waiters = std::map<std::string, std::vector<Waiter>>;

  void answer(const Waiter& waiter, const std::string& value);
  // If the rank has too many requests waiting already, refuses this one and returns false.
  bool may_wait(const Waiter& from, const std::string& where);
  void end_barrier(const std::string& name, const std::vector<Waiter>& waiters);
  [[nodiscard]] base::Error late_error(bool is_barrier, const std::string& key, const Waiter& late,
                                       const std::vector<Waiter>& waiters) const;

  RequestLimits limits_;
  std::vector<OutgoingMessage>& outgoing_;
  std::unordered_map<std::string, std::string> store_;
  std::size_t store_bytes_ = 0;
  Waiters gets_;
  Waiters barriers_;
  std::vector<std::size_t> waiting_;  // unanswered requests, by rank
  std::optional<int> left_;           // a rank that has left
  std::int64_t next_deadline_ns_;
};

// "60 s", "0.25 s"
std::string duration_text(std::int64_t ns);
// "rank 3 of 8 has", "ranks 1, 3-5 of 8 have"
std::string ranks_have(const std::vector<int>& ranks, std::size_t of);

}  // namespace assay::control
