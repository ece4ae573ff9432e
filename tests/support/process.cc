#include "support/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "base/unique_fd.h"

namespace assay::support {
namespace {

constexpr auto kTimeout = std::chrono::minutes(5);

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
    read = base::UniqueFd(ends[0]);
    write = base::UniqueFd(ends[1]);
  }
  base::UniqueFd read;
  base::UniqueFd write;
};

// Reads both streams until the program has closed them; false when that took too long.
bool drain(base::UniqueFd& out, base::UniqueFd& err, ProcessResult& outcome) {
  const auto deadline = std::chrono::steady_clock::now() + kTimeout;
  while (out.valid() || err.valid()) {
    std::array<pollfd, 2> streams = {{{out.get(), POLLIN, 0}, {err.get(), POLLIN, 0}}};
    if (std::chrono::steady_clock::now() > deadline) return false;
    if (::poll(streams.data(), streams.size(), 1000) < 0) continue;
    const auto take = [](const pollfd& stream, base::UniqueFd& fd, std::string& text) {
      if (stream.revents == 0) return;
      std::array<char, 65536> buffer;
      const ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
      if (count > 0) {
        text.append(buffer.data(), static_cast<std::size_t>(count));
      } else {
        fd.reset();
      }
    };
    take(streams[0], out, outcome.out);
    take(streams[1], err, outcome.err);
  }
  return true;
}

}  // namespace

const std::string& program() {
  static const std::string kProgram = [] {
    const char* given = std::getenv("ASSAY_PROGRAM");
    return std::string(given != nullptr ? given : "build/assay");
  }();
  return kProgram;
}

bool program_is_sanitized() {
  static const bool sanitized = [] {
    const std::string version = run({{program(), "--version"}}).out;
    if (version.find("; sanitizers: ") == std::string::npos) std::abort();
    return version.find("; sanitizers: none\n") == std::string::npos;
  }();
  return sanitized;
}

ProcessResult run(const Invocation& invocation) {
  Pipe in;
  Pipe out;
  Pipe err;
  std::vector<char*> argv;
  for (const std::string& argument : invocation.arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);

  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(in.read.get(), 0);
    ::dup2(out.write.get(), 1);
    ::dup2(err.write.get(), 2);
    ::signal(SIGPIPE, SIG_DFL);  // ignored in this process, see below, which would be inherited
    ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);  // ctest leaves its log open in its tests
    if (!invocation.directory.empty() && ::chdir(invocation.directory.c_str()) != 0) ::_exit(126);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  in.read.reset();
  out.write.reset();
  err.write.reset();
  ::signal(SIGPIPE, SIG_IGN);  // the program may end without reading its input
  std::thread feeder([&] {
    std::string_view rest = invocation.input;
    while (!rest.empty()) {
      const ssize_t count = ::write(in.write.get(), rest.data(), rest.size());
      if (count <= 0) break;
      rest.remove_prefix(static_cast<std::size_t>(count));
    }
    in.write.reset();
  });

  ProcessResult outcome;
  if (!drain(out.read, err.read, outcome)) ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  feeder.join();
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

}  // namespace assay::support
