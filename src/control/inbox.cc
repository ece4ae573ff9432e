#include "control/inbox.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

namespace assay::control {

FailureSubscription& FailureSubscription::operator=(FailureSubscription&& other) noexcept {
  if (this != &other) {
    end();
    callbacks_ = std::move(other.callbacks_);
    place_ = other.place_;
  }
  return *this;
}

void FailureSubscription::end() {
  if (!callbacks_) return;
  const std::lock_guard lock(callbacks_->mutex);
  callbacks_->functions.erase(place_);
}

base::Result<std::unique_ptr<Inbox>> Inbox::make() {
  base::UniqueFd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event.valid()) {
    return base::fail(base::system_error("control channel", "cannot create an eventfd", errno));
  }
  return std::unique_ptr<Inbox>(new Inbox(std::move(event)));
}

void Inbox::deliver(const Message& message) {
  if (message.kind == FrameKind::kFailure) {
    return fail({static_cast<int>(message.number), decode_error(message.value)});
  }
  {
    const std::lock_guard lock(mutex_);
    if (message.kind == FrameKind::kComplete) {
      complete_ = true;
    } else if (message.kind == FrameKind::kGoodbye) {
      goodbye_ = true;
    } else if (message.kind == FrameKind::kAnswer) {
      // Nobody waits for an answer that arrives after its request's limit.
      const auto request = requests_.find(message.id);
      if (request == requests_.end()) return;
      if (message.number == 0) {
        request->second = message.value;
      } else {
        request->second = base::fail(decode_error(message.value));
      }
    } else {
      return;
    }
  }
  changed_.notify_all();
}

void Inbox::fail(const Failure& failure) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = failure;
    // Signalled before anybody can learn of the failure, so that everyone who does also finds the
    // event.
    const std::uint64_t one = 1;
    (void)!::write(event_.get(), &one, sizeof one);
    failed_.store(true, std::memory_order_release);
  }
  changed_.notify_all();
  const std::lock_guard lock(callbacks_->mutex);
  for (const FailureCallback& callback : callbacks_->functions) callback(failure);
}

std::uint64_t Inbox::open() {
  const std::lock_guard lock(mutex_);
  requests_.emplace(++last_id_, std::nullopt);
  return last_id_;
}

base::Result<std::string> Inbox::take(std::uint64_t id, SteadyTime limit, const base::Error& late) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, limit, [&] { return requests_[id] || failure_ || goodbye_; });
  const std::optional<base::Result<std::string>> answer = std::move(requests_[id]);
  requests_.erase(id);
  if (answer) return *answer;
  if (failure_) return base::fail(failure_->error);
  if (goodbye_) {
    return base::fail(base::failed_error("rank 0", "has left the job", "ranks leave together"));
  }
  return base::fail(late);
}

base::Result<void> Inbox::wait_complete(SteadyTime limit, const base::Error& late) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, limit, [&] { return complete_ || failure_ || goodbye_; });
  if (failure_) return base::fail(failure_->error);
  if (complete_) return {};
  if (goodbye_) return base::fail(base::failed_error("rank 0", "left before all ranks had joined"));
  return base::fail(late);
}

bool Inbox::wait_until_rank_0_leaves(SteadyTime limit) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, limit, [&] { return goodbye_ || failure_; });
  return goodbye_;
}

void Inbox::wait_failed(SteadyTime limit) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, limit, [&] { return failure_.has_value() || goodbye_; });
}

bool Inbox::rank_0_left() const {
  const std::lock_guard lock(mutex_);
  return goodbye_;
}

std::optional<Failure> Inbox::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

FailureSubscription Inbox::on_failure(FailureCallback callback) {
  // failed_ is set before the callbacks are called under this lock: either that call includes this
  // callback, or it is called here.
  std::unique_lock lock(callbacks_->mutex);
  if (failed()) {
    lock.unlock();
    callback(*failure());
    return {};
  }
  callbacks_->functions.push_front(std::move(callback));
  return {callbacks_, callbacks_->functions.begin()};
}

}  // namespace assay::control
