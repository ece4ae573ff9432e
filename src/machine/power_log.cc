#include "machine/power_log.h"

#include <algorithm>

namespace assay::machine {
namespace {

constexpr double kStale = 1;  // seconds

}  // namespace

double Consumption::interpolated_joules(std::int64_t now_ns) const {
  return last_->joules + *slope_ * base::seconds_between(last_->ns, now_ns);
}

std::optional<double> Consumption::joules_at(std::int64_t now_ns,
                                             const MeterReading& reading) const {
  if (reading.joules) return reading.joules;
  if (!reading.watts) return std::nullopt;
  if (!last_) return 0;
  const double mean = (last_->watts.value_or(*reading.watts) + *reading.watts) / 2;
  return last_->joules + mean * base::seconds_between(last_->ns, now_ns);
}

void Consumption::add(std::int64_t now_ns, const MeterReading& reading) {
  if (reading.clock_mhz) {
    clock_sum_ += *reading.clock_mhz;
    ++clocks_;
    last_clock_ = reading.clock_mhz;
  }
  const auto joules = joules_at(now_ns, reading);
  if (!joules) return;
  if (last_ && (*joules < last_->joules || now_ns <= last_->ns)) {
    // The counter was reset.
    last_.reset();
    slope_.reset();
  }
  // Drivers update their counters a few times a second; an unchanged value is not zero power.
  if (last_ && reading.joules && slope_ && *joules == last_->joules &&
      base::seconds_between(last_->ns, now_ns) < kStale) {
    return;
  }
  const bool first = !slope_;
  if (last_ && reading.joules) {
    slope_ = (*joules - last_->joules) / base::seconds_between(last_->ns, now_ns);
  } else if (reading.watts) {
    slope_ = reading.watts;
  }
  last_ = Point{now_ns, *joules, reading.watts};
  if (first && slope_) taken_joules_ = interpolated_joules(taken_ns_);
}

PowerUse Consumption::take(std::int64_t now_ns) {
  PowerUse used{
      .seconds = base::seconds_between(taken_ns_, now_ns), .joules = {}, .clock_mhz = last_clock_};
  if (clocks_ > 0) used.clock_mhz = clock_sum_ / clocks_;
  clock_sum_ = 0;
  clocks_ = 0;
  taken_ns_ = now_ns;
  if (!slope_) return used;
  const double joules = std::max(taken_joules_, interpolated_joules(now_ns));
  used.joules = joules - taken_joules_;
  taken_joules_ = joules;
  return used;
}

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
