#include "assay-train/live_line.h"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/clock.h"
#include "base/process/proc.h"
#include "base/terminal.h"
#include "base/units.h"

namespace assay::cli {
namespace {

struct Field {
  int rank;  // the highest is dropped first; 0: never
  std::string text;
};

std::string clock_text(double seconds) {
  const std::int64_t whole = std::llround(seconds);
  if (whole >= 3600) {
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  }
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

std::string utilisation_text(const Utilisation& u) {
  if (!u.fp8) return fmt::format("MFU {:.1f} % (6N {:.1f} %)", 100 * u.mfu, 100 * u.mfu_6n);
  return fmt::format("MFU {:.1f} % (6N {:.1f} %) of fp8, {:.1f} % of {}", 100 * u.fp8->mfu,
                     100 * u.fp8->mfu_6n, 100 * u.mfu, u.peak);
}

std::vector<Field> fields_of(const MeasuredStep& step, std::optional<double> validation_loss) {
  const train::StepReport& r = step.report;
  std::vector<Field> fields = {
      {0, fmt::format("step {:>{}}/{}", r.step, std::to_string(r.steps).size(), r.steps)},
      {0, fmt::format("loss {:.4f}", r.loss)}};
  const auto add = [&](int rank, std::string text) { fields.push_back({rank, std::move(text)}); };
  if (r.skipped) add(0, "skipped: gradients not finite");
  if (validation_loss) add(5, fmt::format("val {:.4f}", *validation_loss));
  add(6, fmt::format("norm {:.3f}", r.gradient_norm));
  add(8, fmt::format("lr {:.2e}", r.learning_rate));
  add(0, fmt::format("{} tok/s", base::grouped(std::llround(r.tokens_per_s))));
  if (step.utilisation) {
    add(2, utilisation_text(*step.utilisation));
  }
  if (step.usage.memory_bytes > 0) add(4, base::to_text(base::Bytes(step.usage.memory_bytes)));
  if (const auto watts = step.watts()) add(3, fmt::format("{:.0f} W", *watts));
  if (step.usage.power.clock_mhz) add(7, fmt::format("{:.0f} MHz", *step.usage.power.clock_mhz));
  return fields;
}

std::string joined(const std::vector<Field>& fields) {
  std::string line;
  for (const Field& field : fields) line += (line.empty() ? "" : "  ") + field.text;
  return line;
}

double process_age_s() {
  const auto stat = base::process_stat(::getpid());
  timespec now{};
  if (!stat || ::clock_gettime(CLOCK_BOOTTIME, &now) != 0) return 0;
  const double started =
      static_cast<double>(stat->start_ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return std::max(0.0, static_cast<double>(base::nanoseconds(now)) / 1e9 - started);
}

void show(std::string_view doing, double seconds) {
  std::string line = fmt::format("starting, {:.1f} s: {}", seconds, doing);
  const std::size_t columns = base::terminal_columns(STDERR_FILENO).value_or(80);
  line.resize(std::min(line.size(), columns == 0 ? 0 : columns - 1));
  base::progress_on_stderr = true;
  base::write_stderr(std::string(base::kClearLine) + line);
}

}  // namespace

void Eta::stepped(std::int64_t step, double seconds) {
  // The first step warms up caches, clocks and libraries: it is not representative.
  const bool warm = step > first_ + 1;
  step_seconds_ = warm ? 0.9 * step_seconds_ + 0.1 * seconds : seconds;
  step_ = step;
}

double Eta::seconds_left() const {
  const std::int64_t steps = std::max<std::int64_t>(0, last_ - step_);
  double left = step_seconds_ * static_cast<double>(steps);
  if (validate_every_ > 0) {
    const std::int64_t validations = last_ / validate_every_ - step_ / validate_every_;
    left += validation_seconds_ * static_cast<double>(std::max<std::int64_t>(0, validations));
  }
  return left;
}

Rows::Rows(std::int64_t first, std::int64_t last, std::int64_t steps) : first_(first), last_(last) {
  constexpr std::int64_t kRows = 20;
  every_ = std::max<std::int64_t>(1, (steps - first + 1) / kRows);
}

bool Rows::due(std::int64_t step, double now_s) {
  constexpr double kLongest_s = 30;
  const bool regular = step == first_ || step == last_ || step % every_ == 0;
  if (!regular && now_s - printed_s_ < kLongest_s) return false;
  printed_s_ = now_s;
  return true;
}

std::string live_line(const MeasuredStep& step, std::optional<double> validation_loss,
                      std::optional<double> eta_seconds, std::optional<std::size_t> columns) {
  std::vector<Field> fields = fields_of(step, validation_loss);
  if (eta_seconds) fields.push_back({1, "ETA " + clock_text(*eta_seconds)});
  std::string line = joined(fields);
  while (columns && line.size() >= *columns) {
    const auto least =
        std::max_element(fields.begin(), fields.end(),
                         [](const Field& a, const Field& b) { return a.rank < b.rank; });
    if (least->rank == 0) {
      line.resize(*columns == 0 ? 0 : *columns - 1);
      break;
    }
    fields.erase(least);
    line = joined(fields);
  }
  return line;
}

train::StartUp begin_start(const Session& session) {
  const bool shown = !session.quiet && ::isatty(STDERR_FILENO) == 1;
  return train::StartUp(process_age_s(), shown ? train::StartUp::Show(show) : nullptr);
}

void clear_start_line() {
  if (base::progress_on_stderr.exchange(false)) base::write_stderr(base::kClearLine);
}

}  // namespace assay::cli
