#include "store/testing/child.h"

#include <grp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "base/check.h"

namespace assay::store::testing {

Child::Child(const std::function<void(const Report&)>& body) {
  std::array<int, 2> ends{};
  ASSAY_CHECK(::pipe(ends.data()) == 0, "a test can make a pipe");
  pid_ = ::fork();
  ASSAY_CHECK(pid_ >= 0, "a test can fork");
  if (pid_ == 0) {
    ::close(ends[0]);
    body([&](std::string_view text) {
      if (::write(ends[1], text.data(), text.size()) < 0) ::_exit(99);
    });
    ::_exit(0);
  }
  ::close(ends[1]);
  pipe_ = ends[0];
}

Child::~Child() {
  if (pid_ < 0) return;
  kill();
  wait();
}

void Child::kill() {
  ::kill(pid_, SIGKILL);
}

ChildResult Child::wait() {
  ChildResult outcome;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t size = ::read(pipe_, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    outcome.reported.append(buffer.data(), static_cast<std::size_t>(size));
  }
  ::close(pipe_);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  outcome.killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

void become_nobody() {
  if (::geteuid() != 0) return;
  const bool done =
      ::setgroups(0, nullptr) == 0 && ::setgid(kNobody) == 0 && ::setuid(kNobody) == 0;
  ASSAY_CHECK(done, "root can become user nobody");
}

}  // namespace assay::store::testing
