#include "assay-train/start_line.h"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/process/proc.h"
#include "base/terminal.h"

namespace assay::cli {
namespace {

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

train::StartUp begin_start(const Session& session) {
  const bool shown = !session.quiet && ::isatty(STDERR_FILENO) == 1;
  return train::StartUp(process_age_s(), shown ? train::StartUp::Show(show) : nullptr);
}

void clear_start_line() {
  if (base::progress_on_stderr.exchange(false)) base::write_stderr(base::kClearLine);
}

}  // namespace assay::cli
