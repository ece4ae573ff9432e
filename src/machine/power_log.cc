#include "machine/power_log.h"

namespace assay::machine {

PowerLog::PowerLog(std::unique_ptr<Meter> meter, std::chrono::milliseconds every)
    : meter_(std::move(meter)), consumption_(clock_.monotonic_ns()) {
  read();
  thread_ = std::thread([this, every] { work(every); });
}

PowerLog::~PowerLog() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  thread_.join();
}

void PowerLog::read() {
  const MeterReading reading = meter_->read();  // may be slow, so without the lock
  const std::lock_guard lock(mutex_);
  consumption_.add(clock_.monotonic_ns(), reading);
}

void PowerLog::work(std::chrono::milliseconds every) {
  std::unique_lock lock(mutex_);
  while (!stop_.wait_for(lock, every, [this] { return stopping_; })) {
    lock.unlock();
    read();
    lock.lock();
  }
}

PowerUse PowerLog::take() {
  const std::lock_guard lock(mutex_);
  return consumption_.take(clock_.monotonic_ns());
}

}  // namespace assay::machine
