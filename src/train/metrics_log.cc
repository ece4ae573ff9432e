#include "train/metrics_log.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

namespace assay::train {
namespace {

// Attempts to write to a locked store at the end of the run; each waits about a second.
constexpr int kLastTries = 3;

}  // namespace

MetricsLog::MetricsLog(store::ThisRun run, Note note, std::chrono::milliseconds every)
    : run_(std::move(run)), note_(std::move(note)), every_(every), thread_([this] { work(); }) {}

MetricsLog::~MetricsLog() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  pending_.notify_all();
  stop_.notify_all();
  thread_.join();
}

void MetricsLog::add(store::MetricRow row) {
  {
    const std::lock_guard lock(mutex_);
    if (given_up_) return;
    rows_.push_back(std::move(row));
  }
  pending_.notify_one();
}

void MetricsLog::add(store::PlanRecord plan) {
  {
    const std::lock_guard lock(mutex_);
    plan_ = std::move(plan);
  }
  pending_.notify_one();
}

void MetricsLog::report(std::string_view lost, base::Error why) const {
  why.what = fmt::format("{} not written to the store: {}", lost, why.what);
  note_(why.line());
}

void MetricsLog::give_up(const base::Error& why) {
  {
    const std::lock_guard lock(mutex_);
    given_up_ = true;
    rows_.clear();
  }
  report("metrics are", why);
}

bool MetricsLog::open() {
  auto store = store::Store::open(run_.location, store::Program{});
  if (!store) {
    give_up(store.error());
    return false;
  }
  store_.emplace(*std::move(store));
  auto writer = store::MetricWriter::begin(*store_, run_.uid);
  if (!writer) {
    give_up(writer.error());
    return false;
  }
  writer_.emplace(*std::move(writer));
  return true;
}

// What a locked store did not accept stays in `plan` and `rows`.
bool MetricsLog::write(std::optional<store::PlanRecord>& plan,
                       std::vector<store::MetricRow>& rows) {
  if (plan) {
    const auto written = store::write_plan(*store_, run_.uid, *plan);
    if (written && !*written) return true;
    plan.reset();
    if (!written) report("the plan is", written.error());
  }
  if (rows.empty()) return true;
  const auto written = writer_->write(rows);
  if (!written) {
    give_up(written.error());
    return false;
  }
  if (*written) rows.clear();
  return true;
}

void MetricsLog::work() {
  std::optional<store::PlanRecord> plan;
  std::vector<store::MetricRow> rows;
  int last_tries = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    pending_.wait(lock,
                  [&] { return stopping_ || plan_ || plan || !rows_.empty() || !rows.empty(); });
    if (plan_) plan = std::exchange(plan_, std::nullopt);
    std::move(rows_.begin(), rows_.end(), std::back_inserter(rows));
    rows_.clear();
    if (stopping_ && ((rows.empty() && !plan) || last_tries++ == kLastTries)) break;
    lock.unlock();
    if (!writer_ && !open()) return;
    if (!write(plan, rows)) return;
    lock.lock();
    stop_.wait_for(lock, every_, [this] { return stopping_; });
  }
  lock.unlock();
  const auto locked = [this](std::string_view missing, const char* fix) {
    return base::unfit_error(
        run_.location.database.string(),
        fmt::format("other processes kept it locked until the end; {}", missing), fix);
  };
  if (plan) report("the plan is", locked("assay report will predict anew", ""));
  if (!rows.empty()) {
    give_up(locked(fmt::format("{} steps are missing", rows.size()), "metrics.jsonl has them"));
  }
}

}  // namespace assay::train
