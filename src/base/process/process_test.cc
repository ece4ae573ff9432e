// The launcher, its limits on time and output, and how programs are found.
#include "base/process/process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <thread>

#include "base/file.h"
#include "base/process/capture.h"
#include "base/process/exit_status.h"
#include "base/process/program.h"
#include "base/testing/temp_dir.h"

namespace assay::base {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

CaptureOptions shell(const std::string& script) {
  return {.arguments = {"sh", "-c", script}, .environment = Environment::from_current()};
}

// Whether the process is gone within seconds. It is no child of ours, so init has to wait for it.
bool is_gone(pid_t pid) {
  for (int i = 0; i < 500; ++i) {
    std::ifstream status("/proc/" + std::to_string(pid) + "/stat");
    std::string text((std::istreambuf_iterator<char>(status)), {});
    if (text.empty() || text.find(") Z ") != std::string::npos) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

TEST(Capture, HasOutputErrorsAndExitCode) {
  const auto done = run_captured(shell("echo out; echo err >&2; exit 3"));
  ASSERT_TRUE(done);
  EXPECT_EQ(done->output, "out\n");
  EXPECT_EQ(done->errors, "err\n");
  EXPECT_EQ(done->exit_code, 3);
  EXPECT_FALSE(done->ok());
  EXPECT_EQ(run_captured(shell("kill -KILL $$"))->exit_code, 128 + SIGKILL);
}

TEST(Capture, GivesInputDirectoryAndEnvironment) {
  testing::TempDir folder;
  CaptureOptions options = shell("cat; pwd; echo $A");
  options.directory = folder.path();
  options.environment.set("A", "1 2");
  EXPECT_EQ(run_captured(options)->output, fs::canonical(folder.path()).string() + "\n1 2\n");
  options.input = std::string(200'000, 'x');
  EXPECT_EQ(run_captured(options)->output.substr(0, 200'000), options.input);
}

TEST(Capture, KillsEverythingWhenTimeIsUp) {
  CaptureOptions options = shell("sleep 600 & echo $!; sleep 600");
  // On a loaded machine the shell may need longer to print the process.
  for (options.timeout = 300ms; options.timeout < 60s; options.timeout *= 2) {
    const auto began = SteadyClock::now();
    const auto done = run_captured(options);
    EXPECT_LT(SteadyClock::now() - began, options.timeout + 60s);
    ASSERT_TRUE(done);
    EXPECT_TRUE(done->timed_out);
    EXPECT_FALSE(done->too_long);
    if (done->output.empty()) continue;
    EXPECT_TRUE(is_gone(std::stoi(done->output)));
    return;
  }
  FAIL() << "the shell printed nothing";
}

TEST(Capture, LimitsTheTimeOfAProgramThatClosedItsOutput) {
  CaptureOptions options = shell("exec >&- 2>&-; sleep 60");
  options.timeout = 300ms;
  const auto began = SteadyClock::now();
  EXPECT_TRUE(run_captured(options)->timed_out);
  EXPECT_LT(SteadyClock::now() - began, 30s);
}

TEST(Capture, StopsAProgramThatWritesTooMuch) {
  CaptureOptions options = shell("yes");
  options.output_limit = 1000;
  const auto done = run_captured(options);
  ASSERT_TRUE(done);
  EXPECT_TRUE(done->too_long);
  EXPECT_FALSE(done->timed_out);
  EXPECT_EQ(done->output.size(), 1000U);
  // Only the beginning of standard error is kept, and the program continues.
  const auto loud = run_captured(shell("head -c 100000 /dev/zero >&2; echo end"));
  EXPECT_TRUE(loud->ok());
  EXPECT_EQ(loud->errors.size(), 65536U);
  EXPECT_EQ(loud->output, "end\n");
}

TEST(Process, NamesAMissingProgram) {
  const auto missing = Process::start(
      {.arguments = {"no-such-program-anywhere"}, .environment = Environment::from_current()});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().line(),
            "no-such-program-anywhere: cannot start: No such file or directory");
  // A program of that name in the working directory is not used.
  testing::TempDir folder;
  const fs::path program = folder.path() / "no-such-program-anywhere";
  std::ofstream(program) << "#!/bin/sh\n";
  ::chmod(program.c_str(), 0755);
  EXPECT_FALSE(Process::start({.arguments = {"no-such-program-anywhere"},
                               .environment = Environment::from_current(),
                               .directory = folder.path()}));
  EXPECT_EQ(PreparedProcess({.arguments = {"/etc/passwd"}}).start().error(), EACCES);
}

TEST(Process, RedirectsToFilesAndSharesThem) {
  testing::TempDir folder;
  const fs::path log = folder.path() / "log";
  auto process = Process::start(
      {.arguments = {"sh", "-c", "echo out; echo err >&2; cat"},
       .environment = Environment::from_current(),
       .redirections = {from_null(0),
                        {.descriptor = 1, .path = log, .flags = O_WRONLY | O_CREAT | O_TRUNC},
                        {.descriptor = 2, .from = 1}}});
  ASSERT_TRUE(process);
  EXPECT_EQ(process->wait().wait_status, 0);
  EXPECT_EQ(*read_file(log, Bytes(100)), "out\nerr\n");
}

TEST(Process, WaitsUntilADeadlineAndCountsTime) {
  auto process = Process::start({.arguments = {"sh", "-c", "read line; exit 5"},
                                 .environment = Environment::from_current(),
                                 .redirections = {{.descriptor = 0, .path = "/dev/zero"}}});
  ASSERT_TRUE(process);
  EXPECT_FALSE(process->wait_until(SteadyClock::now() + 50ms));
  process->signal(SIGTERM);
  const auto exit = process->wait_until(SteadyClock::now() + 60s);
  ASSERT_TRUE(exit);
  EXPECT_EQ(signal_of(exit->wait_status), SIGTERM);
  EXPECT_GT(exit->usage.ru_utime.tv_usec + exit->usage.ru_stime.tv_usec, 0);
}

// With every descriptor in use, there is none for a pidfd. The program inherits none of them.
TEST(Process, WaitsUntilADeadlineWithoutAPidfd) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{.rlim_cur = 100, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<UniqueFd> all;
  do {
    all.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  } while (all.back().valid());
  auto process =
      Process::start({.arguments = {"sleep", "100"}, .environment = Environment::from_current()});
  all.clear();
  ::setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_TRUE(process);
  ASSERT_EQ(process->descriptor(), -1);
  EXPECT_FALSE(process->wait_until(SteadyClock::now() + 50ms));
  process->signal(SIGTERM);
  const auto exit = process->wait_until(SteadyClock::now() + 60s);
  ASSERT_TRUE(exit);
  EXPECT_EQ(signal_of(exit->wait_status), SIGTERM);
}

TEST(Process, IsKilledWithItsGroupWhenItIsDestroyed) {
  testing::TempDir folder;
  const fs::path file = folder.path() / "pid";
  pid_t child = 0;
  {
    auto process =
        Process::start({.arguments = {"sh", "-c",
                                      "sleep 60 & echo $! > " + file.string() + ".new; mv " +
                                          file.string() + ".new " + file.string() + "; wait"},
                        .environment = Environment::from_current()});
    ASSERT_TRUE(process);
    for (int i = 0; i < 500 && !fs::exists(file); ++i) std::this_thread::sleep_for(10ms);
    std::ifstream(file) >> child;
    ASSERT_GT(child, 0);
    Process moved = *std::move(process);
    EXPECT_GT(moved.pid(), 0);
  }
  EXPECT_TRUE(is_gone(child));
}

TEST(Process, HasDefaultSignalsUnlessTheyAreInherited) {
  struct sigaction ignore {
  }, before{};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGUSR1, &ignore, &before);
  for (const bool inherited : {false, true}) {
    ProcessOptions options{.arguments = {"sh", "-c", "kill -USR1 $$; exit 4"},
                           .environment = Environment::from_current()};
    if (inherited) options.default_signals.reset();
    auto process = Process::start(options);
    ASSERT_TRUE(process);
    EXPECT_EQ(shell_exit_code(process->wait().wait_status), inherited ? 4 : 128 + SIGUSR1);
  }
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST(FindProgram, SearchesAsAShellDoes) {
  testing::TempDir folder;
  fs::create_directories(folder.path() / "bin" / "tool");  // a folder is not a program
  fs::create_directories(folder.path() / "sub");
  for (const char* name : {"sub/tool", "tool", "plain"}) {
    std::ofstream(folder.path() / name) << "#!/bin/sh\n";
    ::chmod((folder.path() / name).c_str(), name == std::string_view("plain") ? 0644 : 0755);
  }
  const std::string root = folder.path().string();
  const std::string path = root + "/none:" + root + "/bin:" + root + "/sub:" + root;
  EXPECT_EQ(find_program("tool", path), root + "/sub/tool");
  EXPECT_EQ(find_program("plain", path), std::nullopt);
  EXPECT_EQ(find_program("", path), std::nullopt);
  EXPECT_EQ(find_program("tool", root + "/bin:", folder.path()), "./tool");
  EXPECT_EQ(find_program("tool", "sub", folder.path()), "sub/tool");
  EXPECT_EQ(find_program("./tool", "", folder.path()), "./tool");
  EXPECT_EQ(find_program("./plain", "", folder.path()), std::nullopt);
  EXPECT_EQ(find_program(root + "/tool", ""), root + "/tool");
}

TEST(OwnProgram, IsThisTest) {
  const fs::path own = own_program();
  EXPECT_EQ(own, fs::canonical("/proc/self/exe"));
  EXPECT_EQ(beside_own_program(own.filename().string(), {"none", ""}), own);
  EXPECT_EQ(beside_own_program("no-such-file", {"", ".."}), std::nullopt);
}

TEST(BesideOwnProgram, FindsTheFirstFileThatCanBeUsed) {
  const testing::TempDir folder;
  const auto write = [&](const char* name, mode_t mode) {
    const fs::path file = folder.path() / name;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << "x";
    ASSERT_EQ(::chmod(file.c_str(), mode), 0);
  };
  write("data/lib.so", 0644);
  write("tools/lib.so", 0755);
  fs::create_directories(folder.path() / "first/lib.so");  // a folder is neither
  const std::string here = fs::relative(folder.path(), own_program().parent_path()).string() + "/";
  const std::string first = here + "first";
  const std::string data = here + "data";
  const std::string tools = here + "tools";
  EXPECT_EQ(beside_own_program("lib.so", {first, data, tools}), folder.path() / "tools/lib.so");
  EXPECT_EQ(beside_own_program("lib.so", {first, data, tools}, FileUse::kRead),
            folder.path() / "data/lib.so");
  EXPECT_EQ(beside_own_program("lib.so", {first}, FileUse::kRead), std::nullopt);
}

TEST(RestartProgram, RunsThisProgramWithTheArgumentsAndTheEnvironmentAsItIs) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::setenv("GTEST_FILTER", "RestartProgram.*", 1);
    std::string name = "any name";
    std::string list = "--gtest_list_tests";
    char* const arguments[] = {name.data(), list.data(), nullptr};
    (void)restart_program(arguments);
    ::_exit(1);
  }
  ::close(ends[1]);
  std::string listed;
  char piece[256];
  for (ssize_t got = 0; (got = ::read(ends[0], piece, sizeof piece)) > 0;) {
    listed.append(piece, static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_THAT(listed,
              ::testing::HasSubstr(
                  "RestartProgram.\n  RunsThisProgramWithTheArgumentsAndTheEnvironmentAsItIs"));
  EXPECT_THAT(listed, ::testing::Not(::testing::HasSubstr("OwnProgram.\n")));
}

TEST(ReplaceProcess, ReturnsWhyItFailed) {
  EXPECT_EQ(replace_process({"/no/such", "x"}).line(),
            "/no/such: cannot be started: No such file or directory");
}

}  // namespace
}  // namespace assay::base
