// The text of the line, fitted to the width; the rate behind the ETA; when and where it is drawn.
#include "base/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <initializer_list>
#include <utility>

#include "base/terminal.h"
#include "base/text.h"

namespace assay::base {
namespace {

constexpr double kSmoothingSeconds = 5;
constexpr double kLongestEtaSeconds = 365.0 * 86400;  // beyond this the estimate is useless

std::string amount(std::int64_t value, ProgressUnit unit) {
  return unit == ProgressUnit::kBytes ? to_text(Bytes(value)) : grouped(value);
}

std::string count_part(const ProgressFacts& facts) {
  std::string done = amount(facts.done, facts.unit);
  if (!facts.total) return done;
  return fmt::format("{} / {}", done, amount(*facts.total, facts.unit));
}

std::string percent_part(const ProgressFacts& facts) {
  if (!facts.total) return {};
  if (facts.done >= *facts.total) return "100%";
  // Rounded down and held below 100: "100%" means done.
  const double share = static_cast<double>(facts.done) / static_cast<double>(*facts.total);
  return fmt::format("{:3}%", std::clamp(static_cast<int>(share * 100), 0, 99));
}

std::string rate_part(const ProgressFacts& facts) {
  if (!(facts.per_second > 0)) return {};
  if (facts.unit == ProgressUnit::kBytes) return to_text(BytesPerSecond(facts.per_second));
  if (facts.per_second < 100) return fmt::format("{:.3g}/s", facts.per_second);
  return grouped(std::llround(std::min(facts.per_second, 1e18))) + "/s";
}

// 0:05, 12:34, 1:02:03, "5.20 d"
std::string clock_text(double seconds) {
  if (seconds >= 100 * 3600) return to_text(Seconds(seconds));
  const long long all = std::llround(seconds);
  const long long h = all / 3600;
  const long long min = all / 60 % 60;
  const long long s = all % 60;
  return h > 0 ? fmt::format("{}:{:02}:{:02}", h, min, s) : fmt::format("{}:{:02}", min, s);
}

std::string time_part(const ProgressFacts& facts) {
  if (!facts.total) return clock_text(std::max(facts.elapsed.count(), 0.0));
  if (!(facts.per_second > 0)) return {};
  const double left = static_cast<double>(std::max<std::int64_t>(*facts.total - facts.done, 0));
  const double eta = left / facts.per_second;
  return eta > kLongestEtaSeconds ? std::string() : "ETA " + clock_text(eta);
}

std::string joined(std::initializer_list<std::string_view> parts) {
  std::string line;
  for (const std::string_view part : parts) {
    if (part.empty()) continue;
    if (!line.empty()) line += "  ";
    line += part;
  }
  return line;
}

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

std::string progress_line(const ProgressFacts& given, std::size_t columns) {
  ProgressFacts facts = given;
  facts.done = std::max<std::int64_t>(facts.done, 0);
  // The label gives way first: numbers are what changes.
  const std::string label =
      shortened(printable(facts.label), std::max<std::size_t>(columns / 3, 8));
  const std::string count = count_part(facts);
  const std::string percent = percent_part(facts);
  const std::string rate = rate_part(facts);
  const std::string time = time_part(facts);
  const std::string& least = facts.total ? percent : count;
  for (const std::string& line :
       {joined({label, count, percent, rate, time}), joined({label, count, percent, time}),
        joined({label, least, time}), joined({label, least}), std::string(trim(least))}) {
    if (display_width(line) <= columns) return line;
  }
  return {};
}

void SmoothedRate::sample(double amount, double seconds) {
  if (!(seconds > 0)) return;
  const double keep = std::exp(-seconds / kSmoothingSeconds);
  weighted_ = weighted_ * keep + amount / seconds * (1 - keep);
  weight_ = weight_ * keep + (1 - keep);
}

double SmoothedRate::per_second() const {
  return weight_ > 0 ? std::max(weighted_ / weight_, 0.0) : 0;
}

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
