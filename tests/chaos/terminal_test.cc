// `assay run` on a terminal: Ctrl-C, Ctrl-\ and Ctrl-Z reach the command, and `assay run` ends or
// stops as the command does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "base/unique_fd.h"
#include "chaos/project.h"

namespace assay::chaos {
namespace {

using ::testing::HasSubstr;

// A program whose terminal this is.
class OnTerminal {
 public:
  OnTerminal(const std::vector<std::string>& arguments, const std::filesystem::path& where) {
    std::vector<char*> argv;
    for (const std::string& argument : arguments)
      argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    int master = -1;
    pid_ = ::forkpty(&master, nullptr, nullptr, nullptr);
    if (pid_ == 0) {
      ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
      if (::chdir(where.c_str()) != 0) ::_exit(126);
      ::execvp(argv[0], argv.data());
      ::_exit(127);
    }
    master_ = base::UniqueFd(master);
  }
  OnTerminal(const OnTerminal&) = delete;
  OnTerminal& operator=(const OnTerminal&) = delete;
  ~OnTerminal() {
    ::kill(-pid_, SIGKILL);
    if (!reaped_) ::waitpid(pid_, nullptr, 0);
  }

  void type(const std::string& keys) {
    ASSERT_EQ(::write(master_.get(), keys.data(), keys.size()), std::ssize(keys));
  }
  // Reads until the text has been seen; false when that takes too long.
  bool sees(const std::string& text) {
    return eventually(
        [&] {
          pollfd stream = {master_.get(), POLLIN, 0};
          std::array<char, 4096> buffer;
          while (::poll(&stream, 1, 0) > 0) {
            const ssize_t count = ::read(master_.get(), buffer.data(), buffer.size());
            if (count <= 0) break;
            seen_.append(buffer.data(), static_cast<std::size_t>(count));
          }
          return seen_.find(text) != std::string::npos;
        },
        std::chrono::seconds(10));
  }
  // The next change of state: ended, or stopped.
  std::optional<int> wait() {
    int status = 0;
    const bool changed = eventually(
        [&] {
          sees("");  // so that no writer waits for a reader
          return ::waitpid(pid_, &status, WNOHANG | WUNTRACED) == pid_;
        },
        std::chrono::seconds(10));
    if (!changed) return {};
    reaped_ = !WIFSTOPPED(status);
    return status;
  }
  void close() { master_.reset(); }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] const std::string& seen() const { return seen_; }

 private:
  base::UniqueFd master_;
  pid_t pid_ = 0;
  bool reaped_ = false;
  std::string seen_;
};

class Terminal : public WithTracer {
 protected:
  [[nodiscard]] std::vector<std::string> run(const std::string& script) const {
    return {support::program(), "run", "--tracer", GetParam(), "--", "sh", "-c", script};
  }
  Project project_;
};

TEST_P(Terminal, ControlCReachesTheCommand) {
  OnTerminal shell(run("trap 'echo caught; exit 42' INT; echo ready; while :; do sleep 0.02; done"),
                   project_.path());
  ASSERT_TRUE(shell.sees("ready")) << shell.seen();
  shell.type("\x03");
  EXPECT_TRUE(shell.sees("caught")) << shell.seen();
  const auto status = shell.wait();
  ASSERT_TRUE(status);
  EXPECT_TRUE(WIFEXITED(*status) && WEXITSTATUS(*status) == 42) << *status;
  const base::Json shown = project_.finished_run();
  EXPECT_EQ(shown["run"]["exit_code"], 42);
  EXPECT_EQ(shown["run"]["status"], "failed");
  EXPECT_TRUE(shown["run"]["complete"].get<bool>());
}

TEST_P(Terminal, ControlCOnce) {
  // The terminal signals the whole group; the keeper must not send the same once more.
  OnTerminal shell(
      run("n=0; trap 'n=$((n+1))' INT; echo ready; i=0; while [ $i -lt 30 ]; do sleep 0.02; "
          "i=$((i+1)); done; echo count $n."),
      project_.path());
  ASSERT_TRUE(shell.sees("ready")) << shell.seen();
  shell.type("\x03");
  EXPECT_TRUE(shell.sees("count 1.")) << shell.seen();
}

// The kernel tells the leader of the session only, which is `assay run` here.
TEST_P(Terminal, AClosedTerminalReachesTheCommand) {
  OnTerminal shell(run("trap 'exit 42' HUP; echo ready; while :; do sleep 0.02; done"),
                   project_.path());
  ASSERT_TRUE(shell.sees("ready")) << shell.seen();
  shell.close();
  const auto status = shell.wait();
  ASSERT_TRUE(status);
  EXPECT_TRUE(WIFEXITED(*status) && WEXITSTATUS(*status) == 42) << *status;
  EXPECT_EQ(project_.finished_run()["run"]["exit_code"], 42);
}

TEST_P(Terminal, ACommandThatDiesOfControlC) {
  OnTerminal shell(run("echo ready; exec sleep 60"), project_.path());
  ASSERT_TRUE(shell.sees("ready")) << shell.seen();
  shell.type("\x03");
  const auto status = shell.wait();
  ASSERT_TRUE(status);
  EXPECT_TRUE(WIFSIGNALED(*status) && WTERMSIG(*status) == SIGINT) << *status;
  EXPECT_EQ(project_.finished_run()["run"]["exit_code"], 130);
}

TEST_P(Terminal, ControlZStopsAndGoesOn) {
  // Job control as a shell does it: a separate process group in the foreground of the terminal.
  OnTerminal shell(
      {"bash", "-i", "-c",
       "set -m; '" + support::program() + "' run --tracer " + GetParam() +
           " -- sh -c 'echo ready; read line; echo said $line'; echo stopped $?; fg; echo over $?"},
      project_.path());
  ASSERT_TRUE(shell.sees("ready")) << shell.seen();
  shell.type("\x1a");
  ASSERT_TRUE(shell.sees("stopped 148")) << shell.seen();
  shell.type("hello\n");
  EXPECT_TRUE(shell.sees("said hello")) << shell.seen();
  EXPECT_TRUE(shell.sees("over 0")) << shell.seen();
}

TEST_P(Terminal, TheCommandHasTheTerminal) {
  OnTerminal shell(
      run("test -t 0 && test -t 1 && test -t 2 && read line < /dev/tty && echo said $line"),
      project_.path());
  shell.type("hello\n");
  EXPECT_TRUE(shell.sees("said hello")) << shell.seen();
}

INSTANTIATE_TEST_SUITE_P(Chaos, Terminal, ::testing::Values("preload", "ebpf", "ptrace"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace assay::chaos
