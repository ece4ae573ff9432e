// SIGKILL of parts of `assay run` at various moments: the command must not notice, the database
// must stay intact, and the record must not contain more than was observed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <random>
#include <thread>

#include "chaos/project.h"

namespace assay::chaos {
namespace {

using base::Json;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr int kRounds = 400;  // of busy: at least 200 ms on any machine so far

struct Parts {
  pid_t keeper = 0;
  pid_t collector = 0;
  pid_t command = 0;
};

// One run that has begun its work.
class Victim {
 public:
  Victim(const Project& project, const std::string& tracer, const std::string& program = "busy")
      : background_({support::program(), "run", "--tracer", tracer, "--",
                     CHAOS_PROGRAMS "/" + program, std::to_string(kRounds)},
                    project.path()) {
    parts_.keeper = background_.pid();
    parts_.collector = await_child(parts_.keeper, kCollector);
    if (parts_.collector != 0) parts_.command = await_child(parts_.collector, program);
    const auto first = project.path() / "kept_0.txt";
    begun_ = parts_.command != 0 && eventually([&] { return std::filesystem::exists(first); });
  }
  [[nodiscard]] bool begun() const { return begun_; }
  [[nodiscard]] const Parts& parts() const { return parts_; }
  Background& background() { return background_; }

 private:
  Background background_;
  Parts parts_;
  bool begun_ = false;
};

// Nothing is invented: all of these are files that busy makes. (They need not be there any more,
// the command may have gone on.)
void expect_outputs_of_busy(const Json& shown, const Project& project) {
  for (const Json& file : shown["outputs"]) {
    const auto path = file["path"].get<std::string>();
    if (!path.starts_with(project.path().string())) continue;  // standard output and error
    EXPECT_THAT(path.substr(project.path().string().size()),
                ::testing::MatchesRegex("/((made|kept)_[0-9]+|log|passing)[.]txt"));
  }
}

// Files that the command has made for good by now. Their making is in the log.
int kept_files(const Project& project) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(project.path())) {
    if (entry.path().filename().string().starts_with("kept_")) ++count;
  }
  return count;
}

int outputs_named_kept(const Json& shown) {
  int count = 0;
  for (const Json& file : shown["outputs"]) {
    if (file["path"].get<std::string>().find("/kept_") != std::string::npos) ++count;
  }
  return count;
}

void expect_whole(const Project& project) {
  EXPECT_EQ(project.integrity(), "ok");
  const support::ProcessResult log = project.assay({"log"});
  EXPECT_EQ(log.exit_code, 0) << log.err;
  EXPECT_THAT(log.out, HasSubstr("busy"));
}

class Kill : public WithTracer {
 protected:
  // Does `harm` at several moments and then `check`s.
  void at_moments(const std::function<void(Victim&)>& harm,
                  const std::function<void(Project&, Victim&)>& check) {
    std::mt19937 random(20250714);
    // A sanitized build is slow; once is enough there.
    const int moments = support::program_is_sanitized() ? 1 : 3;
    for (int moment = 0; moment < moments; ++moment) {
      const int ms = std::uniform_int_distribution(0, 80)(random);
      SCOPED_TRACE("killed after " + std::to_string(ms) + " ms");
      Project project;
      Victim run(project, GetParam());
      ASSERT_TRUE(run.begun()) << run.background().err();
      std::this_thread::sleep_for(std::chrono::milliseconds(ms));
      seen_ = kept_files(project);
      harm(run);
      check(project, run);
      if (HasFailure()) return;
    }
  }
  // Everything that happened before the kill must be recorded.
  void expect_nothing_forgotten(const Json& shown, const Project& project) const {
    // ptrace records a call when it has returned: the last one before the kill may be missing.
    const int in_flight = GetParam() == "ptrace" ? 1 : 0;
    EXPECT_GE(outputs_named_kept(shown), seen_ - in_flight);
    expect_outputs_of_busy(shown, project);
  }
  int seen_ = 0;
};

TEST_P(Kill, Collector) {
  // ptrace has no process that could take over: the kernel kills the command with its tracer.
  if (GetParam() == "ptrace") GTEST_SKIP() << "see TracerAndCommandEndTogether";
  at_moments([](Victim& run) { ::kill(run.parts().collector, SIGKILL); },
             [this](Project& project, Victim& run) {
               const auto status = run.background().wait();
               ASSERT_TRUE(status) << "assay run hangs";
               EXPECT_TRUE(WIFEXITED(*status) && WEXITSTATUS(*status) == 0) << *status;
               EXPECT_EQ(run.background().out(), "finished\n") << run.background().err();
               expect_whole(project);
               const Json shown = project.finished_run();
               ASSERT_TRUE(shown.is_object());
               EXPECT_FALSE(shown["run"]["complete"].get<bool>());
               EXPECT_FALSE(shown["missed"].empty());
               EXPECT_EQ(shown["run"]["exit_code"], 0) << "assay run knew it";
               expect_nothing_forgotten(shown, project);
             });
}

// Without a process at the gate every stopped call fails; `assay run` makes sure that there is one.
// A static program has no library in it that could help itself.
TEST_P(Kill, CollectorAndGuard) {
  if (GetParam() == "ptrace") GTEST_SKIP() << "has no guard";
  for (const bool guard_first : {true, false}) {
    Project project;
    Victim run(project, GetParam(), "busy_static");
    ASSERT_TRUE(run.begun()) << run.background().err();
    const pid_t guard = await_child(run.parts().keeper, kGuard);
    ASSERT_NE(guard, 0);
    ::kill(guard_first ? guard : run.parts().collector, SIGKILL);
    ::kill(guard_first ? run.parts().collector : guard, SIGKILL);
    // And the next one.
    const auto is_new = [&] {
      const pid_t found = child_named(run.parts().keeper, kGuard);
      return found != 0 && found != guard;
    };
    EXPECT_TRUE(eventually(is_new));
    ::kill(child_named(run.parts().keeper, kGuard), SIGKILL);
    const auto status = run.background().wait();
    ASSERT_TRUE(status) << "assay run hangs";
    EXPECT_TRUE(WIFEXITED(*status) && WEXITSTATUS(*status) == 0) << *status;
    EXPECT_EQ(run.background().out(), "finished\n") << run.background().err();
    EXPECT_EQ(project.finished_run()["run"]["exit_code"], 0);
  }
}

TEST(KillPtrace, TracerAndCommandEndTogether) {
  Project project;
  Victim run(project, "ptrace");
  ASSERT_TRUE(run.begun()) << run.background().err();
  ::kill(run.parts().collector, SIGKILL);
  const auto status = run.background().wait();
  ASSERT_TRUE(status) << "assay run hangs";
  EXPECT_TRUE(WIFSIGNALED(*status) && WTERMSIG(*status) == SIGKILL) << *status;
  EXPECT_EQ(lines(run.background().err()).size(), 1U) << run.background().err();
  expect_whole(project);
  const Json shown = project.finished_run();
  ASSERT_TRUE(shown.is_object());
  EXPECT_EQ(shown["run"]["status"], "interrupted");
  EXPECT_FALSE(shown["run"]["complete"].get<bool>());
}

TEST_P(Kill, Keeper) {
  at_moments([](Victim& run) { ::kill(run.parts().keeper, SIGKILL); },
             [this](Project& project, Victim& run) {
               ASSERT_TRUE(run.background().wait());
               EXPECT_TRUE(eventually([&] { return run.background().out() == "finished\n"; }))
                   << run.background().out() << run.background().err();
               const Json shown = project.finished_run();
               ASSERT_TRUE(shown.is_object());
               EXPECT_EQ(shown["run"]["status"], "interrupted");
               EXPECT_TRUE(outputs_named_kept(shown) == kRounds || !shown["missed"].empty());
               expect_whole(project);
               expect_nothing_forgotten(shown, project);
             });
}

TEST_P(Kill, KeeperAndCollector) {
  at_moments(
      [](Victim& run) {
        ::kill(run.parts().keeper, SIGKILL);
        ::kill(run.parts().collector, SIGKILL);
      },
      [this](Project& project, Victim& run) {
        ASSERT_TRUE(run.background().wait());
        // No process is left at the gate. Only programs with the shim can continue then.
        if (GetParam() == "preload") {
          EXPECT_TRUE(eventually([&] { return run.background().out() == "finished\n"; }))
              << run.background().out() << run.background().err();
        } else {
          eventually([&] { return ::kill(run.parts().command, 0) != 0; });
        }
        expect_whole(project);
        const Json shown = project.finished_run();
        ASSERT_TRUE(shown.is_object());
        EXPECT_EQ(shown["run"]["status"], "interrupted");
        EXPECT_FALSE(shown["run"]["complete"].get<bool>());
        expect_nothing_forgotten(shown, project);
      });
}

// A dynamic program goes on, whatever it does first, and so do the programs that it starts.
class Deserted : public ::testing::TestWithParam<const char*> {};
TEST_P(Deserted, TheCallWorks) {
  Project project;
  ASSERT_EQ(project.bash("echo text > text").exit_code, 0);
  Background run({support::program(), "run", "--tracer", "preload", "--",
                  CHAOS_PROGRAMS "/deserted", GetParam()},
                 project.path());
  const pid_t collector = await_child(run.pid(), kCollector);
  const pid_t guard = await_child(run.pid(), kGuard);
  ASSERT_TRUE(collector != 0 && guard != 0) << run.err();
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(project.path() / "kept_0.txt"); }));
  for (const pid_t one : {guard, collector, run.pid()}) ::kill(one, SIGKILL);
  run.wait();
  ASSERT_EQ(project.bash("touch go").exit_code, 0);
  EXPECT_TRUE(eventually([&] { return run.out() == "text\ndone\n"; }, std::chrono::seconds(5)))
      << run.out() << run.err();
  EXPECT_EQ(run.err(), "");
  EXPECT_EQ(project.finished_run()["run"]["status"], "interrupted");
}
INSTANTIATE_TEST_SUITE_P(Chaos, Deserted,
                         ::testing::Values("execve", "execlp", "vfork", "posix_spawn", "system",
                                           "popen", "threads", "dlopen", "mkstemp", "utimensat",
                                           "remove", "rename"),
                         [](const auto& one) { return std::string(one.param); });

// A shell script runs on to its end.
TEST(KillEverybodyElse, AScriptRunsOn) {
  Project project;
  Background run({support::program(), "run", "--tracer", "preload", "--", "bash", "-c",
                  "echo > kept_0.txt; while [ ! -e go ]; do :; done; seq 3 | sort -r > a; mv a b; "
                  "sh -c 'sh -c \"cat b\"'; echo done"},
                 project.path());
  const pid_t collector = await_child(run.pid(), kCollector);
  const pid_t guard = await_child(run.pid(), kGuard);
  ASSERT_TRUE(collector != 0 && guard != 0) << run.err();
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(project.path() / "kept_0.txt"); }));
  for (const pid_t one : {guard, collector, run.pid()}) ::kill(one, SIGKILL);
  run.wait();
  ASSERT_EQ(project.bash("touch go").exit_code, 0);
  EXPECT_TRUE(eventually([&] { return run.out() == "3\n2\n1\ndone\n"; })) << run.out() << run.err();
}

TEST_P(Kill, Command) {
  at_moments([](Victim& run) { ::kill(run.parts().command, SIGKILL); },
             [this](Project& project, Victim& run) {
               const auto status = run.background().wait();
               ASSERT_TRUE(status) << "assay run hangs";
               EXPECT_TRUE(WIFSIGNALED(*status) && WTERMSIG(*status) == SIGKILL) << *status;
               const Json shown = project.finished_run();
               ASSERT_TRUE(shown.is_object());
               EXPECT_EQ(shown["run"]["status"], "failed");
               EXPECT_EQ(shown["run"]["exit_code"], 137);
               expect_whole(project);
               expect_nothing_forgotten(shown, project);
             });
}

TEST_P(Kill, Everything) {
  at_moments(
      [](Victim& run) {
        ::kill(-run.parts().keeper, SIGKILL);
        ::kill(run.parts().collector, SIGKILL);
        ::kill(run.parts().command, SIGKILL);
      },
      [this](Project& project, Victim& run) {
        ASSERT_TRUE(run.background().wait());
        expect_whole(project);
        const Json shown = project.finished_run();
        ASSERT_TRUE(shown.is_object());
        EXPECT_EQ(shown["run"]["status"], "interrupted");
        EXPECT_FALSE(shown["run"]["complete"].get<bool>());
        expect_nothing_forgotten(shown, project);
        // The project is intact.
        EXPECT_EQ(project.assay({"run", "--", "true"}).exit_code, 0);
        EXPECT_TRUE(project.finished_run()["run"]["complete"].get<bool>());
      });
}

// What was observed before everything was killed is recovered afterwards.
TEST_P(Kill, WhatWasSeenIsRecovered) {
  Project project;
  Victim run(project, GetParam());
  ASSERT_TRUE(run.begun()) << run.background().err();
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(project.path() / "kept_30.txt"); }));
  ::kill(-run.parts().keeper, SIGKILL);
  ::kill(run.parts().collector, SIGKILL);
  ::kill(run.parts().command, SIGKILL);
  run.background().wait();
  const Json shown = project.finished_run();
  ASSERT_TRUE(shown.is_object());
  EXPECT_GE(outputs_named_kept(shown), 30);
  EXPECT_THAT(shown["inputs"].dump(), HasSubstr((project.path() / "in.txt").string()));
}

INSTANTIATE_TEST_SUITE_P(Chaos, Kill, ::testing::Values("preload", "ebpf", "ptrace"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace assay::chaos
