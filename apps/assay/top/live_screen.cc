#include "assay/top/live_screen.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/terminal.h"
#include "base/text.h"

namespace assay::cli {
namespace {

constexpr std::array kEnds = {SIGINT, SIGTERM, SIGHUP};
// ECMA-48 and xterm: the alternate screen without a cursor, and back.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l";
constexpr std::string_view kLeave = "\x1b[?25h\x1b[?1049l";
constexpr std::string_view kHome = "\x1b[H";
constexpr std::string_view kEndOfLine = "\x1b[K";
constexpr std::string_view kRestOfScreen = "\x1b[J";
constexpr std::size_t kDefaultColumns = 80;
constexpr std::size_t kDefaultRows = 24;

volatile sig_atomic_t end_requested = 0;
volatile sig_atomic_t stop_requested = 0;

void on_end(int /*signal*/) {
  end_requested = 1;
}
void on_stop(int /*signal*/) {
  stop_requested = 1;
}
void on_size(int /*signal*/) {}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(signal, &action, nullptr);
}

// All of it: half an escape sequence would leave the terminal in a wrong state.
void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno != EINTR) return;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::size_t terminal_rows() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0) return kDefaultRows;
  return size.ws_row;
}

}  // namespace

LiveScreen::LiveScreen(bool draws) : draws_(draws) {
  end_requested = 0;
  stop_requested = 0;
  sigset_t ours{};
  ::sigemptyset(&ours);
  for (const int signal : kEnds) ::sigaddset(&ours, signal);
  if (draws_) {
    ::sigaddset(&ours, SIGWINCH);
    ::sigaddset(&ours, SIGTSTP);
  }
  // Blocked except while waiting, so that none arrives between the check of a flag and the wait.
  ::sigprocmask(SIG_BLOCK, &ours, &before_);
  for (const int signal : kEnds) handle(signal, on_end);
  if (draws_) {
    handle(SIGWINCH, on_size);
    handle(SIGTSTP, on_stop);
    enter();
  }
}

LiveScreen::~LiveScreen() {
  if (draws_) leave();
}

void LiveScreen::enter() const {
  write_all(kEnter);
}

void LiveScreen::leave() const {
  write_all(kLeave);
}

bool LiveScreen::ended() const {
  return end_requested != 0;
}

bool LiveScreen::wait_until(std::int64_t deadline_ns) {
  const std::int64_t left =
      std::max<std::int64_t>(deadline_ns - base::system_clock().monotonic_ns(), 0);
  const timespec wait{.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
  if (::ppoll(nullptr, 0, &wait, &before_) == 0) return true;
  if (stop_requested != 0) {
    // The shell needs its screen back before it takes the terminal.
    stop_requested = 0;
    leave();
    ::raise(SIGSTOP);
    enter();
  }
  return false;
}

std::size_t LiveScreen::columns() const {
  return base::terminal_columns(STDOUT_FILENO).value_or(kDefaultColumns);
}

void LiveScreen::draw(const std::string& text) const {
  std::vector<std::string_view> lines;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    lines.push_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  const std::size_t rows = std::max<std::size_t>(terminal_rows(), 2);
  const std::size_t shown = lines.size() <= rows ? lines.size() : rows - 1;
  std::string out(kHome);
  for (std::size_t i = 0; i < shown; ++i) {
    out += fmt::format("{}{}{}", i == 0 ? "" : "\r\n", base::shortened(lines[i], columns()),
                       kEndOfLine);
  }
  if (shown < lines.size()) {
    out += fmt::format("\r\n… {} lines more{}", lines.size() - shown, kEndOfLine);
  }
  out += kRestOfScreen;
  write_all(out);
}

}  // namespace assay::cli
