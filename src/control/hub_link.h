// HubLink: the background thread that carries this process's messages to rank 0's Hub and delivers
// the replies to the Inbox: over a socket (client.h), or directly on rank 0 (server.h).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "control/member.h"
#include "control/wire.h"

namespace assay::control {

// The last step that this process reported. The training thread writes it at every step, so it
// costs only two atomic stores.
class StepProgress {
 public:
  void set(std::int64_t step);
  // As a kHeartbeat.
  [[nodiscard]] Message message() const;

 private:
  std::atomic<std::int64_t> step_ = -1;
  std::atomic<std::int64_t> since_ns_ = 0;
};

// Messages for the background thread, and the event that wakes it up.
class Outbox {
 public:
  static base::Result<Outbox> make();

  void push(Message message);
  void wake() const;
  // Everything pushed so far; resets the event.
  std::vector<Message> take();
  [[nodiscard]] int event_fd() const { return event_.get(); }

  Outbox(Outbox&& other) noexcept : event_(std::move(other.event_)) {}

 private:
  explicit Outbox(base::UniqueFd event) : event_(std::move(event)) {}

  std::mutex mutex_;
  std::vector<Message> messages_;
  base::UniqueFd event_;
};

class HubLink {
 public:
  virtual ~HubLink() = default;
  virtual void send(Message message) = 0;
  virtual void set_step(std::int64_t step) = 0;
  // On rank 0; empty elsewhere.
  [[nodiscard]] virtual std::vector<Member> members() const = 0;
  // Sends what is queued (for at most two seconds), then ends the thread and closes everything.
  virtual void stop() = 0;
  // This process's address on the route to rank 0; empty on rank 0.
  [[nodiscard]] virtual std::string local_address() const = 0;
};

std::int64_t steady_ns();
std::int64_t to_ns(std::chrono::milliseconds time);

}  // namespace assay::control
