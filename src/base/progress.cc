// When and where the line is drawn; progress_line.cc makes its text.
#include "base/progress.h"

#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "base/terminal.h"
#include "base/text.h"

namespace assay::base {
namespace {

constexpr std::int64_t kDrawIntervalNs = 100'000'000;
constexpr std::size_t kUsualColumns = 80;

class StderrTerminal final : public ProgressTerminal {
 public:
  [[nodiscard]] bool is_terminal() const override {
    const char* kind = std::getenv("TERM");  // a dumb terminal cannot clear a line
    return ::isatty(STDERR_FILENO) == 1 && (kind == nullptr || std::string_view(kind) != "dumb");
  }
  [[nodiscard]] std::size_t columns() const override {
    return terminal_columns(STDERR_FILENO).value_or(kUsualColumns);
  }
  void write(std::string_view text) override {
    progress_on_stderr =
        text.starts_with(kClearLine) && text.size() > kClearLine.size() && !text.ends_with('\n');
    write_stderr(text);
  }
};

}  // namespace

ProgressTerminal& stderr_terminal() {
  static StderrTerminal terminal;
  return terminal;
}

Progress::Progress(ProgressOptions options)
    : options_(std::move(options)),
      shown_(!options_.quiet && options_.terminal->is_terminal()),
      start_ns_(options_.clock->monotonic_ns()),
      sampled_ns_(start_ns_) {
  next_draw_ns_ = start_ns_ + kDrawIntervalNs;
}

void Progress::draw_if_due() {
  const std::int64_t now_ns = options_.clock->monotonic_ns();
  if (now_ns < next_draw_ns_.load(std::memory_order_relaxed)) return;
  // Another thread is drawing already.
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || finished_ || now_ns < next_draw_ns_.load(std::memory_order_relaxed)) return;
  next_draw_ns_.store(now_ns + kDrawIntervalNs, std::memory_order_relaxed);
  draw(now_ns);
}

void Progress::draw(std::int64_t now_ns) {
  const std::int64_t now_done = done();
  rate_.sample(static_cast<double>(now_done - sampled_done_),
               static_cast<double>(now_ns - sampled_ns_) / 1e9);
  sampled_ns_ = now_ns;
  sampled_done_ = now_done;

  const ProgressFacts facts{.label = options_.label,
                            .done = now_done,
                            .total = options_.total,
                            .unit = options_.unit,
                            .per_second = rate_.per_second(),
                            .elapsed = Seconds(static_cast<double>(now_ns - start_ns_) / 1e9)};
  // The last column stays free: filling it makes some terminals wrap.
  const std::size_t columns = options_.terminal->columns();
  const std::string line = progress_line(facts, columns > 0 ? columns - 1 : 0);
  options_.terminal->write(std::string(kClearLine) + line);
  drawn_ = true;
}

void Progress::finish(std::string_view summary) {
  const std::lock_guard lock(mutex_);
  if (finished_) return;
  finished_ = true;
  if (!shown_) return;
  std::string last = drawn_ ? std::string(kClearLine) : std::string();
  if (!summary.empty()) last += printable(summary) + "\n";
  if (!last.empty()) options_.terminal->write(last);
}

}  // namespace assay::base
