// See child.h. posix_spawn, because the caller may have threads and a large memory; a process group
// of its own, so that what the program starts (filters of git) can be killed with it.
#include "lineage/source/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>

#include "base/file.h"
#include "base/wait_status.h"

namespace assay::lineage {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kErrorsKept = 65536;

struct Pipe {
  base::UniqueFd read, write;
};

base::Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return base::fail(base::system_error("", "cannot make a pipe", errno));
  }
  return Pipe{base::UniqueFd(ends[0]), base::UniqueFd(ends[1])};
}

// A file rather than a pipe: the program reads it whenever it likes.
base::Result<base::UniqueFd> open_input(const std::string& text) {
  if (text.empty()) return base::UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  base::UniqueFd file(::memfd_create("assay-input", MFD_CLOEXEC));
  if (!file.valid() || !base::write_all(file.get(), text) ||
      ::lseek(file.get(), 0, SEEK_SET) != 0) {
    return base::fail(base::system_error("", "cannot keep a program's input in memory", errno));
  }
  return file;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  list.reserve(texts.size() + 1);
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

// Rounded up; 0 when it has passed.
int milliseconds_until(Clock::time_point deadline) {
  using std::chrono::milliseconds;
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
  return static_cast<int>(std::max(left, milliseconds(0)).count());
}

// Whether there may be more.
bool read_some(int fd, std::string& to, std::size_t limit, bool& too_long) {
  std::array<char, 65536> buffer;
  const ssize_t count = ::read(fd, buffer.data(), buffer.size());
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  if (count == 0) return false;
  const std::size_t room = limit - to.size();
  too_long = static_cast<std::size_t>(count) > room;
  to.append(buffer.data(), std::min(static_cast<std::size_t>(count), room));
  return true;
}

}  // namespace

base::Result<Child> Child::start(ChildOptions options) {
  ASSAY_TRY(Pipe output, make_pipe());
  ASSAY_TRY(Pipe errors, make_pipe());
  ASSAY_TRY(const base::UniqueFd input, open_input(options.input));
  const std::string directory = options.directory.string();

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_adddup2(&actions, input.get(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output.write.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, errors.write.get(), STDERR_FILENO);
  if (!directory.empty()) {
    ::posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
  }
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(
      &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);

  std::vector<char*> words = pointers(options.words);
  std::vector<char*> environment = pointers(options.environment);
  Child child;
  const int error = ::posix_spawnp(&child.pid_, words[0], &actions, &attributes, words.data(),
                                   environment.data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    child.pid_ = -1;
    return base::fail(base::system_error(options.words[0], "cannot start", error));
  }
  child.output_ = std::move(output.read);
  child.errors_ = std::move(errors.read);
  child.deadline_ = Clock::now() + options.timeout;
  child.output_limit_ = options.output_limit;
  return child;
}

ChildResult Child::finish() {
  ChildResult result;
  bool reading_output = true, reading_errors = true;
  while (reading_output || reading_errors) {
    const int left = milliseconds_until(deadline_);
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
  // Both pipes are closed, which is the end of it or nearly so.
  const base::UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  if (!result.timed_out && !result.too_long && process.valid()) {
    pollfd waited{.fd = process.get(), .events = POLLIN, .revents = 0};
    result.timed_out = ::poll(&waited, 1, milliseconds_until(deadline_)) == 0;
  }
  if (result.timed_out || result.too_long) ::kill(-pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  result.exit_code = base::shell_exit_code(status);
  return result;
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      output_(std::move(other.output_)),
      errors_(std::move(other.errors_)),
      deadline_(other.deadline_),
      output_limit_(other.output_limit_) {}

Child& Child::operator=(Child&& other) noexcept {
  if (this == &other) return *this;
  if (pid_ > 0) end_it();
  pid_ = std::exchange(other.pid_, -1);
  output_ = std::move(other.output_);
  errors_ = std::move(other.errors_);
  deadline_ = other.deadline_;
  output_limit_ = other.output_limit_;
  return *this;
}

Child::~Child() {
  if (pid_ > 0) end_it();
}

void Child::end_it() {
  ::kill(-pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

base::Result<ChildResult> run_child(ChildOptions options) {
  ASSAY_TRY(Child child, Child::start(std::move(options)));
  return child.finish();
}

}  // namespace assay::lineage
