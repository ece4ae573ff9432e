#include "compare/timed_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cctype>

#include "base/clock.h"
#include "base/file.h"
#include "base/process/capture.h"
#include "base/process/exit_status.h"
#include "base/process/process.h"
#include "base/process/program.h"
#include "base/unique_fd.h"

namespace assay::compare {
namespace {

constexpr std::int64_t kGraceNs = 2'000'000'000;
constexpr mode_t kOutputMode = 0644;

base::Result<base::UniqueFd> output_file(const std::filesystem::path& path) {
  base::UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kOutputMode));
  if (!fd.valid()) return base::fail(base::system_error(path, "cannot be written", errno));
  return fd;
}

// A pipe that a process writes to, and the file that receives its output.
struct Stream {
  int pipe = -1;
  int file = -1;
  std::size_t bytes = 0;
};

base::Result<base::Pipe> pipe_if(bool needed) {
  return needed ? base::make_pipe() : base::Pipe{};
}

// Waits for a running process and copies its output from pipes, if there are any, to files.
class ProcessWaiter {
 public:
  ProcessWaiter(base::Process process, std::int64_t started_ns, const ProcessRequest& request,
                const Interrupts& interrupts)
      : process_(std::move(process)), started_ns_(started_ns), interrupts_(interrupts) {
    if (request.timeout) {
      deadline_ns_ = started_ns + static_cast<std::int64_t>(request.timeout->count() * 1e9);
    }
  }

  // A pipe of -1 is ignored.
  ProcessOutcome wait(Stream out, Stream err) {
    while (!ended_) {
      std::array<pollfd, 4> fds = {{{process_.descriptor(), POLLIN, 0},
                                    {ending_ ? -1 : interrupts_.fd(), POLLIN, 0},
                                    {out.pipe, POLLIN, 0},
                                    {err.pipe, POLLIN, 0}}};
      ::poll(fds.data(), fds.size(), timeout_ms());
      const std::int64_t now = base::system_clock().monotonic_ns();
      if (fds[2].revents != 0) copy_output(out, outcome_.moments, now);
      if (fds[3].revents != 0) copy_output(err, outcome_.err_moments, now);
      if (fds[0].revents != 0 || process_.descriptor() < 0) {
        outcome_.wall_s = base::seconds_between(started_ns_, now);
        ended_ = true;
      } else if (fds[1].revents != 0 && !ending_) {
        outcome_.interrupted = true;
        end_group(now);
      } else if (deadline_ns_ && now >= *deadline_ns_) {
        if (!ending_) outcome_.timed_out = true;
        end_group(now);
      }
    }
    reap();
    // The last output may still be in the pipe, which surviving descendants may keep open.
    const std::int64_t end = started_ns_ + static_cast<std::int64_t>(outcome_.wall_s * 1e9);
    while (readable(out.pipe)) copy_output(out, outcome_.moments, end);
    while (readable(err.pipe)) copy_output(err, outcome_.err_moments, end);
    return std::move(outcome_);
  }

 private:
  static bool readable(int pipe) {
    if (pipe < 0) return false;
    pollfd fd = {pipe, POLLIN, 0};
    return ::poll(&fd, 1, 0) == 1;
  }

  [[nodiscard]] int timeout_ms() const {
    if (!deadline_ns_) return -1;
    const std::int64_t left = *deadline_ns_ - base::system_clock().monotonic_ns();
    return left <= 0 ? 0 : static_cast<int>(std::min<std::int64_t>(left / 1'000'000 + 1, 1 << 30));
  }

  // SIGTERM first; SIGKILL if the grace period has passed.
  void end_group(std::int64_t now) {
    process_.signal(ending_ ? SIGKILL : SIGTERM);
    ending_ = true;
    deadline_ns_ = now + kGraceNs;
  }

  void copy_output(Stream& stream, std::vector<OutputMoment>& moments, std::int64_t now) const {
    std::array<char, 65536> buffer;
    const ssize_t got = ::read(stream.pipe, buffer.data(), buffer.size());
    if (got <= 0) {
      if (got == 0 || errno != EINTR) stream.pipe = -1;
      return;
    }
    stream.bytes += static_cast<std::size_t>(got);
    moments.push_back({stream.bytes, base::seconds_between(started_ns_, now)});
    base::write_all(stream.file, {buffer.data(), static_cast<std::size_t>(got)});
  }

  void reap() {
    const base::Exit exit = process_.wait();
    outcome_.wait_status = exit.wait_status;
    const auto seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
    };
    outcome_.cpu_s = seconds(exit.usage.ru_utime) + seconds(exit.usage.ru_stime);
    if (outcome_.interrupted || outcome_.timed_out) process_.signal(SIGKILL);
  }

  base::Process process_;
  std::int64_t started_ns_;
  const Interrupts& interrupts_;
  std::optional<std::int64_t> deadline_ns_;
  bool ending_ = false;
  bool ended_ = false;
  ProcessOutcome outcome_;
};

// Plain or single-quoted words; nothing for other commands.
std::optional<std::vector<std::string>> plain_words(const std::string& command) {
  constexpr std::string_view kPlain = "_@%+=:,./-";
  std::vector<std::string> arguments;
  bool inside = false;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (c == ' ' || c == '\t') {
      inside = false;
      continue;
    }
    if (!inside) arguments.emplace_back();
    inside = true;
    if (c == '\'') {
      const std::size_t close = command.find('\'', i + 1);
      if (close == std::string::npos) return std::nullopt;
      arguments.back() += command.substr(i + 1, close - i - 1);
      i = close;
    } else if (std::isalnum(static_cast<unsigned char>(c)) != 0 ||
               kPlain.find(c) != std::string_view::npos) {
      arguments.back() += c;
    } else {
      return std::nullopt;
    }
  }
  // "A=1 command" sets a variable.
  if (arguments.empty() || arguments.front().find('=') != std::string::npos) return std::nullopt;
  return arguments;
}

}  // namespace

std::optional<std::vector<std::string>> plain_arguments(const std::string& command) {
  auto arguments = plain_words(command);
  // Builtins (cd, exit) and misspelt names are left to the shell.
  if (!arguments || !base::find_program(arguments->front(), base::current_search_path())) {
    return std::nullopt;
  }
  return arguments;
}

std::optional<std::string> unknown_program(const std::string& command,
                                           const base::Environment& environment) {
  const auto words = plain_words(command);
  if (!words || base::find_program(words->front(), base::current_search_path())) {
    return std::nullopt;
  }
  // Only the shell knows its builtins, and this arm's PATH.
  const auto asked =
      base::run_captured({.arguments = {"/bin/sh", "-c", "command -v \"$1\"", "sh", words->front()},
                          .environment = environment});
  return asked && !asked->ok() && !asked->timed_out ? std::optional(words->front()) : std::nullopt;
}

std::vector<std::string> shell_arguments(const std::string& command) {
  return {"/bin/sh", "-c", command};
}

std::string ProcessOutcome::how() const {
  if (timed_out) return "timed out";
  if (interrupted) return "was interrupted";
  const bool not_found =
      !base::signal_of(wait_status) && base::shell_exit_code(wait_status) == base::kExitNotFound;
  return base::exit_text(wait_status) + (not_found ? " (command not found)" : "");
}

base::Result<ProcessOutcome> run_process(const ProcessRequest& request,
                                         const Interrupts& interrupts) {
  ASSAY_TRY(const base::UniqueFd out, output_file(request.out));
  ASSAY_TRY(const base::UniqueFd err, output_file(request.err));
  ASSAY_TRY(base::Pipe out_pipe, pipe_if(request.time_output));
  ASSAY_TRY(base::Pipe err_pipe, pipe_if(request.time_output));
  const std::string& name = request.arguments.front();
  const auto program = base::find_program(name, base::current_search_path());
  if (!program) return base::fail(base::unfit_error(name, "is not an executable program"));
  const auto given = [&request](const base::Pipe& pipe, const base::UniqueFd& file) {
    return request.time_output ? pipe.write_end.get() : file.get();
  };
  base::PreparedProcess prepared(
      {.arguments = request.arguments,
       .environment = request.environment,
       .program = *program,
       .redirections = {base::from_null(STDIN_FILENO),
                        {.descriptor = STDOUT_FILENO, .from = given(out_pipe, out)},
                        {.descriptor = STDERR_FILENO, .from = given(err_pipe, err)}},
       .default_signals = base::interrupting_signals()});
  const std::int64_t started = base::system_clock().monotonic_ns();
  auto process = prepared.start();
  if (!process) {
    return base::fail(base::system_error(*program, "cannot be started", process.error()));
  }
  out_pipe.write_end.reset();
  err_pipe.write_end.reset();
  return ProcessWaiter(*std::move(process), started, request, interrupts)
      .wait({out_pipe.read_end.get(), out.get()}, {err_pipe.read_end.get(), err.get()});
}

}  // namespace assay::compare
