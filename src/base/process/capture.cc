#include "base/process/capture.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/file.h"
#include "base/process/exit_status.h"
#include "base/process/program.h"

namespace assay::base {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t kErrorsKept = 65536;

// A file rather than a pipe: nothing has to be written while the program runs.
Result<UniqueFd> open_input(const std::string& text) {
  if (text.empty()) return UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  UniqueFd file(::memfd_create("assay-input", MFD_CLOEXEC));
  if (!file.valid() || !write_all(file.get(), text) || ::lseek(file.get(), 0, SEEK_SET) != 0) {
    return fail(system_error("", "cannot keep a program's input in memory", errno));
  }
  return file;
}

// Whether there may be more.
bool read_some(int fd, std::string& to, std::size_t limit, bool& too_long) {
  std::array<char, 65536> buffer;
  const ssize_t count = ::read(fd, buffer.data(), buffer.size());
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  if (count == 0) return false;
  const std::size_t space = limit - to.size();
  too_long = static_cast<std::size_t>(count) > space;
  to.append(buffer.data(), std::min(static_cast<std::size_t>(count), space));
  return true;
}

}  // namespace

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return fail(system_error("pipe", "cannot be created", errno));
  }
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

CapturedProcess::CapturedProcess(Process process, UniqueFd output, UniqueFd errors)
    : process_(std::move(process)), output_(std::move(output)), errors_(std::move(errors)) {}

Result<CapturedProcess> CapturedProcess::start(CaptureOptions options) {
  ASSAY_TRY(Pipe output, make_pipe());
  ASSAY_TRY(Pipe errors, make_pipe());
  ASSAY_TRY(const UniqueFd input, open_input(options.input));
  std::string program = options.arguments.front();
  if (program.find('/') == std::string::npos) {
    const auto found = find_program(program, current_search_path(), options.directory);
    if (!found) return fail(system_error(std::move(program), "cannot start", ENOENT));
    program = *found;
  }
  ASSAY_TRY(Process process,
            Process::start(
                {.arguments = std::move(options.arguments),
                 .environment = std::move(options.environment),
                 .program = std::move(program),
                 .directory = std::move(options.directory),
                 .redirections = {{.descriptor = STDIN_FILENO, .from = input.get()},
                                  {.descriptor = STDOUT_FILENO, .from = output.write_end.get()},
                                  {.descriptor = STDERR_FILENO, .from = errors.write_end.get()}}}));
  CapturedProcess captured(std::move(process), std::move(output.read_end),
                           std::move(errors.read_end));
  captured.deadline_ = SteadyClock::now() + options.timeout;
  captured.output_limit_ = options.output_limit;
  return captured;
}

Captured CapturedProcess::finish() {
  Captured result;
  bool reading_output = true, reading_errors = true;
  while (reading_output || reading_errors) {
    const int left = poll_timeout_ms(deadline_);
    if (left == 0) result.timed_out = true;
    if (result.timed_out || result.too_long) break;
    std::array<pollfd, 2> waited = {
        {{.fd = reading_output ? output_.get() : -1, .events = POLLIN, .revents = 0},
         {.fd = reading_errors ? errors_.get() : -1, .events = POLLIN, .revents = 0}}};
    if (::poll(waited.data(), waited.size(), left) <= 0) continue;
    if (waited[0].revents != 0) {
      reading_output = read_some(output_.get(), result.output, output_limit_, result.too_long);
    }
    if (waited[1].revents != 0) {
      bool ignored = false;
      reading_errors = read_some(errors_.get(), result.errors, kErrorsKept, ignored);
    }
  }
  // Both pipes are closed, so the program has exited or is about to.
  std::optional<Exit> exit;
  if (!result.timed_out && !result.too_long) exit = process_.wait_until(deadline_);
  if (!exit) {
    result.timed_out = !result.too_long;
    process_.signal(SIGKILL);
    exit = process_.wait();
  }
  result.exit_code = shell_exit_code(exit->wait_status);
  return result;
}

Result<Captured> run_captured(CaptureOptions options) {
  ASSAY_TRY(CapturedProcess process, CapturedProcess::start(std::move(options)));
  return process.finish();
}

}  // namespace assay::base
