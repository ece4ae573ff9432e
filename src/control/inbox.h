// Inbox: what this process waits for from rank 0: answers to its requests, the arrival of all
// ranks, the failure of the job, permission to leave. The background thread delivers, any thread
// waits.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/result.h"
#include "base/unique_fd.h"
#include "control/member.h"
#include "control/socket.h"
#include "control/wire.h"

namespace assay::control {

using FailureCallback = std::function<void(const Failure&)>;

// Callbacks to call once when the job fails. Shared by the inbox and its subscriptions.
struct FailureCallbacks {
  std::mutex mutex;
  std::list<FailureCallback> functions;
};

// The callback may be called as long as this exists; the destructor waits for a call in progress.
class FailureSubscription {
 public:
  FailureSubscription() = default;
  FailureSubscription(std::shared_ptr<FailureCallbacks> callbacks,
                      std::list<FailureCallback>::iterator place)
      : callbacks_(std::move(callbacks)), place_(place) {}
  FailureSubscription(FailureSubscription&& other) noexcept = default;
  FailureSubscription& operator=(FailureSubscription&& other) noexcept;
  FailureSubscription(const FailureSubscription&) = delete;
  FailureSubscription& operator=(const FailureSubscription&) = delete;
  ~FailureSubscription() { end(); }

 private:
  void end();

  std::shared_ptr<FailureCallbacks> callbacks_;
  std::list<FailureCallback>::iterator place_;
};

class Inbox {
 public:
  static base::Result<std::unique_ptr<Inbox>> make();

  // Called by the background thread.
  void deliver(const Message& message);
  // Also called when the connection to rank 0 ends. Only the first failure counts.
  void fail(const Failure& failure);

  // A new request's id; its answer is kept from now on.
  std::uint64_t open();
  // The answer to the request, the failure of the job, or `late` at the limit.
  base::Result<std::string> take(std::uint64_t id, SteadyTime limit, const base::Error& late);
  base::Result<void> wait_complete(SteadyTime limit, const base::Error& late);
  // Waits until rank 0 says goodbye; false at the limit or when the job fails.
  bool wait_until_rank_0_leaves(SteadyTime limit);
  // Waits until the job has failed or rank 0 says goodbye.
  void wait_failed(SteadyTime limit);

  [[nodiscard]] bool failed() const { return failed_.load(std::memory_order_acquire); }
  [[nodiscard]] bool rank_0_left() const;
  [[nodiscard]] std::optional<Failure> failure() const;
  // Readable once the job has failed.
  [[nodiscard]] int failure_fd() const { return event_.get(); }
  FailureSubscription on_failure(FailureCallback callback);

 private:
  explicit Inbox(base::UniqueFd event) : event_(std::move(event)) {}

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t last_id_ = 0;
  std::unordered_map<std::uint64_t, std::optional<base::Result<std::string>>> requests_;
  bool complete_ = false;
  bool goodbye_ = false;
  std::optional<Failure> failure_;
  std::atomic<bool> failed_ = false;
  base::UniqueFd event_;
  std::shared_ptr<FailureCallbacks> callbacks_ = std::make_shared<FailureCallbacks>();
};

}  // namespace assay::control
