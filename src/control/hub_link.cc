#include "control/hub_link.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace assay::control {

void StepProgress::set(std::int64_t step) {
  since_ns_.store(steady_ns(), std::memory_order_relaxed);
  step_.store(step, std::memory_order_release);
}

Message StepProgress::message() const {
  const std::int64_t step = step_.load(std::memory_order_acquire);
  const std::int64_t since = since_ns_.load(std::memory_order_relaxed);
  const std::int64_t age_ms = step < 0 ? 0 : (steady_ns() - since) / 1'000'000;
  return {.kind = FrameKind::kHeartbeat,
          .id = static_cast<std::uint64_t>(age_ms < 0 ? 0 : age_ms),
          .number = step};
}

base::Result<Outbox> Outbox::make() {
  base::UniqueFd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event.valid()) {
    return base::fail(base::system_error("control channel", "cannot create an eventfd", errno));
  }
  return Outbox(std::move(event));
}

void Outbox::push(Message message) {
  {
    const std::lock_guard lock(mutex_);
    messages_.push_back(std::move(message));
  }
  wake();
}

void Outbox::wake() const {
  const std::uint64_t one = 1;
  (void)!::write(event_.get(), &one, sizeof one);
}

std::vector<Message> Outbox::take() {
  std::uint64_t count = 0;
  (void)!::read(event_.get(), &count, sizeof count);
  const std::lock_guard lock(mutex_);
  return std::exchange(messages_, {});
}

std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::int64_t to_ns(std::chrono::milliseconds time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

}  // namespace assay::control
