// The command runs as without Assay: status, streams, signals, environment, descriptors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <fstream>

#include "chaos/project.h"

namespace assay::chaos {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class Transparent : public WithTracer {
 protected:
  [[nodiscard]] std::vector<std::string> run(std::vector<std::string> command) const {
    std::vector<std::string> arguments = {support::program(), "run", "--tracer", GetParam(), "--"};
    arguments.insert(arguments.end(), command.begin(), command.end());
    return arguments;
  }
  [[nodiscard]] std::string run_text() const {
    return "\"$A\" run --tracer " + GetParam() + " -- ";
  }
  Project project_;
};

// Querying the driver for GPUs takes longer than everything else in a run.
TEST_P(Transparent, TheMachineIsRememberedFromRunToRun) {
  ASSERT_EQ(support::run({run({"true"}), "", project_.path()}).exit_code, 0);
  EXPECT_TRUE(std::filesystem::is_regular_file(project_.path() / ".assay/machine.json"));
}

TEST_P(Transparent, ExitCodes) {
  for (const int code : {0, 1, 42, 255}) {
    const auto outcome =
        support::run({run({"sh", "-c", "exit " + std::to_string(code)}), "", project_.path()});
    EXPECT_EQ(outcome.exit_code, code) << outcome.err;
    EXPECT_EQ(project_.finished_run()["run"]["exit_code"], code);
  }
}

TEST_P(Transparent, DeathBySignal) {
  for (const int number : {SIGTERM, SIGKILL, SIGSEGV, SIGINT, SIGPIPE}) {
    Background background(run({"sh", "-c", "ulimit -c 0; kill -" + std::to_string(number) + " $$"}),
                          project_.path());
    const auto status = background.wait();
    ASSERT_TRUE(status);
    EXPECT_TRUE(WIFSIGNALED(*status) && WTERMSIG(*status) == number) << number << ": " << *status;
    EXPECT_EQ(project_.finished_run()["run"]["exit_code"], 128 + number);
  }
}

TEST_P(Transparent, CommandsThatCannotStart) {
  const auto missing = support::run({run({"no-such-command"}), "", project_.path()});
  EXPECT_EQ(missing.exit_code, 127);
  EXPECT_THAT(missing.err, StartsWith("assay: "));
  EXPECT_EQ(lines(missing.err).size(), 1U) << missing.err;
  const auto plain = support::run({run({"./in.txt"}), "", project_.path()});
  EXPECT_EQ(plain.exit_code, 126);
  EXPECT_EQ(lines(plain.err).size(), 1U) << plain.err;
}

TEST_P(Transparent, StreamsArePassedByteForByte) {
  std::string bytes;
  for (unsigned i = 0; i < 700000; ++i) bytes.push_back(static_cast<char>(i * 2654435761U >> 13U));
  const auto out = support::run({run({"cat"}), bytes, project_.path()});
  EXPECT_TRUE(out.out == bytes) << out.out.size();
  EXPECT_THAT(out.err, IsEmpty());
  const auto err = support::run({run({"sh", "-c", "cat >&2"}), bytes, project_.path()});
  EXPECT_TRUE(err.err == bytes) << err.err.size();
  EXPECT_THAT(err.out, IsEmpty());
}

TEST_P(Transparent, PipesCloseInTime) {
  const auto head = project_.bash("yes | timeout 50 " + run_text() + "head -1");
  EXPECT_EQ(head.out, "y\n");
  EXPECT_EQ(head.exit_code, 0);
  // A writer whose reader has gone gets SIGPIPE, as usual.
  const auto writer =
      project_.bash("timeout 50 " + run_text() + "yes | head -1; echo ${PIPESTATUS[0]}");
  EXPECT_EQ(writer.out, "y\n141\n");
}

TEST_P(Transparent, NoOtherProcessHoldsTheCommandsOutput) {
  // No braces around the command: the shell that groups it would hold the pipe itself.
  const auto outcome =
      project_.bash(run_text() +
                    "sh -c 'echo text >&7; exec >&- 2>&- 7>&-; i=0; while [ ! -e read ] && "
                    "[ $i -lt 400 ]; do sleep 0.1; i=$((i + 1)); done; echo $i > waited' "
                    "7>&1 2>/dev/null | { cat; touch read; }");
  EXPECT_EQ(outcome.out, "text\n");
  EXPECT_TRUE(eventually([&] { return !read_file(project_.path() / "waited").empty(); }));
  EXPECT_NE(read_file(project_.path() / "waited"), "400\n")
      << "the reader waited for the end of assay run";
}

TEST_P(Transparent, SignalsAreForwarded) {
  for (const int number : {SIGTERM, SIGHUP, SIGUSR1, SIGINT, SIGQUIT}) {
    const std::string text = std::to_string(number);
    Background background(
        run({"sh", "-c",
             "trap 'echo got; exit 33' " + text + "; echo ready; while :; do sleep 0.02; done"}),
        project_.path());
    ASSERT_TRUE(eventually([&] { return background.out() == "ready\n"; })) << background.err();
    ::kill(background.pid(), number);
    const auto status = background.wait();
    ASSERT_TRUE(status) << text;
    EXPECT_TRUE(WIFEXITED(*status) && WEXITSTATUS(*status) == 33) << text << ": " << *status;
    EXPECT_EQ(background.out(), "ready\ngot\n");
  }
}

TEST_P(Transparent, Environment) {
  const auto variables = [&](const std::vector<std::string>& command) {
    std::vector<std::string> all = lines(support::run({command, "", project_.path()}).out);
    std::sort(all.begin(), all.end());
    return all;
  };
  const auto bare = variables({"env"});
  std::vector<std::string> added;
  for (const std::string& line : variables(run({"env"}))) {
    if (!std::binary_search(bare.begin(), bare.end(), line))
      added.push_back(line.substr(0, line.find('=')));
  }
  // For programs that measure themselves.
  std::vector<std::string> expected = {"ASSAY_RUN", "ASSAY_METRICS"};
  if (GetParam() == "preload") {
    // The last one lets programs built with AddressSanitizer accept a preloaded library.
    expected.insert(expected.end(), {"LD_PRELOAD", "ASSAY_EVENT_LOG", "ASAN_OPTIONS"});
  }
  EXPECT_THAT(added, ::testing::UnorderedElementsAreArray(expected));
}

TEST_P(Transparent, AnotherPreloadedLibraryStays) {
  const auto outcome =
      project_.bash("LD_PRELOAD=libm.so.6 " + run_text() + "grep -c libm.so /proc/self/maps");
  EXPECT_NE(outcome.out, "0\n") << outcome.err;
}

TEST_P(Transparent, DescriptorsSignalsLimits) {
  const std::vector<std::string> describe = {CHAOS_PROGRAMS "/describe", "one", "two words"};
  const auto bare = support::run({describe, "", project_.path()});
  const auto watched = support::run({run(describe), "", project_.path()});
  EXPECT_EQ(lines(watched.out), lines(bare.out));
  // With unusual ones, too.
  const std::string unusual =
      "trap '' HUP USR2; umask 027; ulimit -n 100; ulimit -c 0; exec 5<in.txt 9>&1; nice -n "
      "3 ";
  EXPECT_EQ(lines(project_.bash(unusual + run_text() + "$P/describe").out),
            lines(project_.bash(unusual + "$P/describe").out));
}

TEST_P(Transparent, AClosedStreamStaysClosed) {
  for (const std::string close : {"0<&-", "2>&-"}) {
    EXPECT_EQ(lines(project_.bash(run_text() + "$P/describe " + close).out),
              lines(project_.bash("$P/describe " + close).out))
        << close;
  }
}

// Not in the store at the end, and not in any file during the run.
TEST_P(Transparent, SecretsOfChildrenDoNotReachTheDisk) {
  const auto outcome = project_.bash(
      "printf '#!/bin/sh\\ngrep -rac \"ZZra[w]\" .assay | grep -v :0\\nexit 0\\n' > tool; "
      "chmod +x tool\n" +
      run_text() +
      "sh -c './tool --password ZZraw1; ./tool --token=ZZraw2; env ./tool --api-key ZZraw3; :'; "
      "grep -rac 'ZZra[w]' .assay | grep -v :0; true");
  EXPECT_EQ(outcome.out, "") << outcome.err;
  EXPECT_THAT(project_.assay({"show", "last", "--json"}).out, HasSubstr("[redacted]"));
}

// The command has ended, one of its processes has not.
class Lingering : public Transparent {
 protected:
  // It ends when `release` exists, or in a minute, so that a failed test leaves none behind.
  static constexpr const char* kLeavesOne =
      "(i=0; while [ ! -e release ] && [ $i -lt 600 ]; do sleep 0.1; i=$((i + 1)); done; "
      "echo late > late.txt) >/dev/null 2>&1 & echo $$ > pid.new; mv pid.new pid; exit 7";
  // The command itself has exited.
  [[nodiscard]] bool command_is_over() const {
    return eventually([&] {
      const std::string pid = read_file(project_.path() / "pid");
      return !pid.empty() && !std::filesystem::exists("/proc/" + pid.substr(0, pid.find('\n')));
    });
  }
  void release() const { std::ofstream(project_.path() / "release") << "\n"; }
  void expect_all_is_recorded() {
    const base::Json shown = project_.finished_run();
    ASSERT_TRUE(shown.is_object());
    EXPECT_EQ(shown["run"]["exit_code"], 7);
    EXPECT_EQ(shown["run"]["status"], "failed");
    EXPECT_TRUE(shown["run"]["complete"].get<bool>());
    EXPECT_THAT(shown["outputs"].dump(), HasSubstr("/late.txt"));
  }
};

TEST_P(Lingering, ASignalLeavesTheRecordingToTheBackground) {
  for (const int number : {SIGTERM, SIGINT}) {
    Background background(run({"sh", "-c", kLeavesOne}), project_.path());
    ASSERT_TRUE(command_is_over());
    // More than once: `assay run` may not have been told yet that the command is over.
    std::optional<int> status;
    eventually([&] {
      ::kill(background.pid(), number);
      status = background.wait(std::chrono::milliseconds(200));
      return status.has_value();
    });
    ASSERT_TRUE(status) << "it waits all the same";
    EXPECT_TRUE(WIFEXITED(*status) && WEXITSTATUS(*status) == 7) << *status;
    release();
    expect_all_is_recorded();
    for (const char* file : {"pid", "release"}) std::filesystem::remove(project_.path() / file);
  }
}

TEST_P(Lingering, NoWait) {
  const auto outcome =  // killed, with another exit code, if it waits
      project_.assay({"run", "--no-wait", "--tracer", GetParam(), "--", "sh", "-c", kLeavesOne});
  EXPECT_EQ(outcome.exit_code, 7);
  release();
  expect_all_is_recorded();
}

INSTANTIATE_TEST_SUITE_P(Chaos, Lingering, ::testing::Values("preload", "ebpf", "ptrace"),
                         [](const auto& one) { return one.param; });

INSTANTIATE_TEST_SUITE_P(Chaos, Transparent, ::testing::Values("preload", "ebpf", "ptrace"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace assay::chaos
