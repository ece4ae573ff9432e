#include "assay-train/run_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/json.h"
#include "base/statistics.h"
#include "base/terminal.h"
#include "base/units.h"
#include "plan/plan.h"
#include "spec/enum_names.h"
#include "store/metrics.h"

namespace assay::cli {
namespace {

// Start-ups long enough for a user to wonder about, and phases of them worth mentioning.
constexpr double kLongStart_s = 2;
constexpr double kLongPart_s = 0.05;

}  // namespace

RunReport::RunReport(const Session& session, const spec::JobSpec& job, MetricsFile metrics,
                     Telemetry& telemetry, std::optional<std::int64_t> last_step)
    : session_(session),
      job_(job),
      metrics_(std::move(metrics)),
      telemetry_(telemetry),
      utilisation_(job),
      stops_at_(last_step),
      terminal_(!session.quiet && ::isatty(STDERR_FILENO) == 1),
      prints_rows_(!(terminal_ && ::isatty(STDOUT_FILENO) == 1)) {
  // Outside a recorded run there is no store to write metrics to.
  if (auto this_run = store::this_run()) {
    log_ = std::make_unique<train::MetricsLog>(*std::move(this_run),
                                               [this](const std::string& line) { note(line); });
  }
}

base::Result<std::unique_ptr<RunReport>> RunReport::open(const Session& session,
                                                         const spec::JobSpec& job,
                                                         const std::filesystem::path& out,
                                                         Telemetry& telemetry,
                                                         std::optional<std::int64_t> last_step) {
  ASSAY_TRY(MetricsFile metrics, MetricsFile::open(out / "metrics.jsonl"));
  return std::unique_ptr<RunReport>(
      new RunReport(session, job, std::move(metrics), telemetry, last_step));
}

RunReport::~RunReport() {
  if (log_ != nullptr && since_ranks_) log_->add(ranks_.ranks());
  log_.reset();  // may print a note
  clear();
}

void RunReport::planned(store::PlanRecord plan) {
  if (log_ != nullptr) log_->add(std::move(plan));
}

void RunReport::resumed(const std::filesystem::path& checkpoint, std::int64_t step) {
  session_.print_json_line(
      base::Json{{"event", "resumed"}, {"checkpoint", checkpoint.string()}, {"step", step}});
  clear();
  session_.print(fmt::format("resuming after step {}: {}\n", step, checkpoint.string()));
}

void RunReport::began(std::int64_t first_step, std::int64_t steps) {
  if (const auto begun = metrics_.begin(first_step); !begun) note(begun.error().line());
  last_step_ = std::min(steps, stops_at_.value_or(steps));
  rows_.emplace(first_step, last_step_, steps);
  eta_.emplace(first_step, last_step_, job_.train.validate_every);
  since_began_.restart();
  telemetry_.discard();
}

void RunReport::started(const train::StartUp& startup) {
  startup_s_ = startup.seconds();
  base::Json parts = base::Json::object();
  std::string line = fmt::format("first step after {:.1f} s:", startup.seconds());
  const char* comma = "";
  for (const train::StartUp::Part& part : startup.parts()) {
    parts[part.name] = part.seconds;
    if (part.seconds < kLongPart_s) continue;
    line += fmt::format("{} {} {:.1f}", comma, part.name, part.seconds);
    comma = ",";
  }
  std::ranges::replace(line, '_', ' ');
  session_.print_json_line(base::Json{
      {"event", "startup"}, {"seconds", startup.seconds()}, {"parts", std::move(parts)}});
  clear();
  if (startup.seconds() >= kLongStart_s) session_.print(line + "\n");
}

void RunReport::write(const char* event, store::MetricRow row) {
  const base::Json json = store::row_json(row);
  const std::string line = base::json_line(json);
  metrics_.write(line);
  if (session_.json) {
    base::Json document{{"event", event}};
    document.update(json);
    session_.print_json_line(document);
  }
  if (log_ != nullptr) log_->add(std::move(row));
}

void RunReport::draw(const MeasuredStep& step) {
  const std::size_t columns = base::terminal_columns(STDERR_FILENO).value_or(80);
  const std::string line = live_line(step, validation_loss_, eta_->seconds_left(), columns);
  base::progress_on_stderr = true;
  base::write_stderr(std::string(base::kClearLine) + line);
}

void RunReport::clear() {
  if (!base::progress_on_stderr.exchange(false)) return;
  base::write_stderr(base::kClearLine);
}

void RunReport::stepped(const train::StepReport& r) {
  const MeasuredStep step{.report = r,
                          .usage = telemetry_.take(),
                          .utilisation = utilisation_.at(r.tokens_per_s),
                          .unix_ns = base::system_clock().wall_ns(),
                          .tokens = job_.tokens_per_step()};
  eta_->stepped(r.step, since_step_ ? since_step_->elapsed().count() - validating_s_ : r.seconds);
  since_step_.emplace();
  validating_s_ = 0;
  totals_.steps += 1;
  totals_.tokens += step.tokens;
  totals_.seconds += r.seconds;
  if (step.usage.power.joules)
    totals_.joules = totals_.joules.value_or(0) + *step.usage.power.joules;
  rates_.push_back(r.tokens_per_s);
  store::MetricRow row_of_step = row_of(step);
  if (const auto seconds = std::exchange(startup_s_, {})) {
    row_of_step.values.push_back({"startup_s", "s", *seconds});
  }
  write("step", std::move(row_of_step));
  const bool row = rows_->due(r.step, since_began_.elapsed().count());
  if (terminal_) draw(step);
  if (row && prints_rows_) session_.print(live_line(step, validation_loss_, {}, {}) + "\n");
}

void RunReport::ranks_stepped(std::int64_t step, std::span<const train::RankSample> ranks) {
  ranks_.stepped(step, ranks);
  constexpr double kEvery_s = 0.5;  // the store gets them about once a second anyway
  if (since_ranks_ && since_ranks_->elapsed().count() < kEvery_s) return;
  since_ranks_.emplace();
  if (log_ != nullptr) log_->add(ranks_.ranks());
}

void RunReport::validated(const train::ValidationReport& report) {
  telemetry_.discard();
  validating_s_ += report.seconds;
  validation_loss_ = report.loss;
  eta_->validated(report.seconds);
  write("validation", row_of(report));
  if (!prints_rows_) return;
  session_.print(fmt::format("validation after step {}: loss {:.4f} over {} tokens\n", report.step,
                             report.loss, base::grouped(report.tokens)));
}

void RunReport::saved(const std::filesystem::path& folder, std::int64_t bytes) {
  clear();
  session_.print_json_line(
      base::Json{{"event", "saved"}, {"checkpoint", folder.string()}, {"bytes", bytes}});
  session_.print(
      fmt::format("saved {} ({})\n", folder.string(), base::to_text(base::Bytes(bytes))));
}

void RunReport::note(const std::string& line) {
  clear();
  base::write_stderr("assay: " + line + "\n");
}

RunTotals RunReport::totals() const {
  RunTotals totals = totals_;
  if (rates_.empty()) return totals;
  totals.tokens_per_s = base::median(rates_);
  totals.utilisation = utilisation_.at(*totals.tokens_per_s);
  return totals;
}

store::PlanRecord plan_record(const std::string& name, const spec::JobSpec& job,
                              const train::ExecutableStep& planned, const TrainingDevice& device) {
  spec::JobSpec chosen = job;
  chosen.train.recompute = planned.program.choices.recompute;
  const bool gpu = device.gpu_bus_id.has_value();
  plan::Plan plan =
      gpu ? plan::plan_of(name, chosen)
          : plan::plan_without_step(name, chosen, device.backend->description(),
                                    "it runs on CPUs, but step times are predicted only for GPUs");
  plan.framework = plan::to_text(plan::Framework::kAssay);
  // For this device, from the rank that needs most memory and the one that communicates most.
  const auto counted = plan::add_programs(plan, chosen,
                                          {.cpu = !gpu,
                                           .memory = base::Bytes(device.available_bytes),
                                           .extra = base::Bytes(planned.extra_bytes)});
  if (!counted) plan.unknown.push_back(counted.error().line());
  store::PlanRecord record{.planned_unix_ns = base::system_clock().wall_ns(),
                           .job = plan.job,
                           .device = plan.device,
                           .plan = plan::to_json(plan)};
  if (plan.memory) record.memory_bytes = plan.memory->need.total().count();
  if (plan.step) record.step_s = plan.step->time.total.count();
  return record;
}

}  // namespace assay::cli
