#include "assay-train/report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/json.h"
#include "base/stderr_line.h"
#include "base/terminal.h"
#include "base/text.h"
#include "base/units.h"

namespace assay::cli {
namespace {

constexpr std::int64_t kRows = 20;  // of a whole run, where there is no terminal

double peak_of(const spec::JobSpec& job) {
  const spec::DeviceSpec& device = job.cluster.device;
  const auto rate = job.train.precision == spec::Precision::kFp32 ? device.fp32 : device.bf16;
  return rate ? rate->count() : 0;
}

std::string clock_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  if (whole >= 3600) {
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  }
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace

RunReport::RunReport(const Session& session, const spec::JobSpec& job, std::FILE* metrics,
                     std::int64_t memory_bytes)
    : session_(session),
      metrics_(metrics),
      memory_bytes_(memory_bytes),
      flops_(train::flops_per_token(job.model, job.batch.sequence)),
      peak_flops_(peak_of(job)),
      terminal_(!session.quiet && ::isatty(STDERR_FILENO) == 1) {}

base::Result<std::unique_ptr<RunReport>> RunReport::open(const Session& session,
                                                         const spec::JobSpec& job,
                                                         const std::filesystem::path& out,
                                                         std::int64_t memory_bytes) {
  const std::filesystem::path path = out / "metrics.jsonl";
  std::FILE* file = std::fopen(path.c_str(), "ae");
  if (file == nullptr) return base::fail(base::system_error(path, "cannot be written", errno));
  return std::unique_ptr<RunReport>(new RunReport(session, job, file, memory_bytes));
}

RunReport::~RunReport() {
  clear();
  std::fclose(metrics_);
}

void RunReport::began(std::int64_t first_step, std::int64_t steps) {
  first_step_ = first_step;
  row_every_ = std::max<std::int64_t>(1, (steps - first_step + 1) / kRows);
}

std::string RunReport::facts(const train::StepReport& r) const {
  std::string text =
      fmt::format("step {:>{}}/{}  loss {:.4f}  norm {:.3f}  lr {:.2e}  {} tok/s", r.step,
                  std::to_string(r.steps).size(), r.steps, r.loss, r.gradient_norm, r.learning_rate,
                  base::grouped(static_cast<std::int64_t>(r.tokens_per_s)));
  if (peak_flops_ > 0) {
    text += fmt::format("  MFU {:.1f} % (6N {:.1f} %)",
                        100 * r.tokens_per_s * flops_.without_embedding / peak_flops_,
                        100 * r.tokens_per_s * flops_.with_embedding / peak_flops_);
  }
  text += "  " + base::to_text(base::Bytes(memory_bytes_));
  if (r.left_out) text += "  left out: gradients not finite";
  return text;
}

std::string RunReport::remaining(const train::StepReport& r) const {
  return clock_text(smooth_seconds_ * static_cast<double>(r.steps - r.step));
}

void RunReport::draw(const train::StepReport& r) {
  std::string line = facts(r) + "  ETA " + remaining(r);
  const std::size_t columns = base::terminal_columns(STDERR_FILENO).value_or(80);
  if (line.size() >= columns) line.resize(columns - 1);
  base::progress_on_stderr = true;
  base::write_stderr(std::string(base::kClearLine) + line);
}

void RunReport::clear() {
  if (!base::progress_on_stderr.exchange(false)) return;
  base::write_stderr(base::kClearLine);
}

void RunReport::stepped(const train::StepReport& r) {
  smooth_seconds_ = smooth_seconds_ == 0 ? r.seconds : 0.9 * smooth_seconds_ + 0.1 * r.seconds;
  const base::Json json{{"step", r.step},
                        {"tokens", r.tokens},
                        {"loss", r.loss},
                        {"z_loss", r.z_loss},
                        {"gradient_norm", r.gradient_norm},
                        {"learning_rate", r.learning_rate},
                        {"seconds", r.seconds},
                        {"tokens_per_s", r.tokens_per_s},
                        {"left_out", r.left_out}};
  const std::string line = json.dump() + "\n";
  std::fwrite(line.data(), 1, line.size(), metrics_);
  std::fflush(metrics_);  // so that someone who watches the file sees the step
  const bool row = r.step == first_step_ || r.step == r.steps || r.step % row_every_ == 0;
  if (terminal_) draw(r);
  if (row && !(terminal_ && ::isatty(STDOUT_FILENO) == 1)) session_.print(facts(r) + "\n");
}

void RunReport::saved(const std::filesystem::path& folder, std::int64_t bytes) {
  clear();
  session_.print(
      fmt::format("saved {} ({})\n", folder.string(), base::to_text(base::Bytes(bytes))));
}

void RunReport::note(const std::string& line) {
  clear();
  base::write_stderr("assay: " + line + "\n");
}

}  // namespace assay::cli
