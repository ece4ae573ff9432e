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
    next_.rows.push_back(std::move(row));
  }
  pending_.notify_one();
}

void MetricsLog::add(store::PlanRecord plan) {
  {
    const std::lock_guard lock(mutex_);
    next_.plan = std::move(plan);
  }
  pending_.notify_one();
}

void MetricsLog::add(std::vector<store::RankRecord> ranks) {
  {
    const std::lock_guard lock(mutex_);
    if (given_up_) return;
    next_.ranks = std::move(ranks);
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
    next_.rows.clear();
    next_.ranks.clear();
  }
  report("metrics are", why);
}

bool MetricsLog::open() {
  auto store = store::Store::open(run_.location, store::StoreProgram{});
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

// Rows that a locked store did not accept stay in the batch.
bool MetricsLog::write(Batch& batch) {
  if (batch.plan) {
    const auto written = store::write_plan(*store_, run_.uid, *batch.plan);
    if (written && !*written) return true;
    batch.plan.reset();
    if (!written) report("the plan is", written.error());
  }
  if (!batch.ranks.empty()) {
    const auto written = store::write_ranks(*store_, run_.uid, batch.ranks);
    if (written && !*written) return true;
    batch.ranks.clear();
    if (!written) {
      give_up(written.error());
      return false;
    }
  }
  if (batch.rows.empty()) return true;
  const auto written = writer_->write(batch.rows);
  if (!written) {
    give_up(written.error());
    return false;
  }
  if (*written) batch.rows.clear();
  return true;
}

void MetricsLog::work() {
  Batch batch;
  int last_tries = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    pending_.wait(lock, [&] { return stopping_ || !next_.empty() || !batch.empty(); });
    if (next_.plan) batch.plan = std::exchange(next_.plan, std::nullopt);
    if (!next_.ranks.empty()) batch.ranks = std::exchange(next_.ranks, {});
    std::move(next_.rows.begin(), next_.rows.end(), std::back_inserter(batch.rows));
    next_.rows.clear();
    if (stopping_ && (batch.empty() || last_tries++ == kLastTries)) break;
    lock.unlock();
    if (!writer_ && !open()) return;
    if (!write(batch)) return;
    lock.lock();
    stop_.wait_for(lock, every_, [this] { return stopping_; });
  }
  lock.unlock();
  const auto locked = [this](std::string_view missing, const char* fix) {
    return base::unfit_error(
        run_.location.database.string(),
        fmt::format("other processes kept it locked until the end; {}", missing), fix);
  };
  if (batch.plan) report("the plan is", locked("assay report will compute a new prediction", ""));
  if (!batch.rows.empty()) {
    give_up(
        locked(fmt::format("{} steps are missing", batch.rows.size()), "metrics.jsonl has them"));
  }
}

}  // namespace assay::train
