#include "observe/collect/ptrace/ptrace.h"

#include <elf.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>
#include <thread>

#include "observe/collect/testing/probe.h"
#include "observe/collect/testing/recorder.h"

namespace assay::collect::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;
using wire::RecordOp;

const std::string kDynamic = ASSAY_CORPUS "dynamic";
const std::string kStatic = ASSAY_CORPUS "static";

class Ptrace : public ::testing::Test {
 protected:
  void SetUp() override {
    const Preflight preflight = ptrace_preflight();
    if (!preflight.available) GTEST_SKIP() << preflight.reason;
    recorder.root = place.path();
  }

  // Runs a command in the temporary directory; its events there are in recorder.lines.
  base::Result<CollectorResult> run(std::vector<std::string> arguments) {
    base::testing::TempDir logs;
    CollectorCallbacks control;
    control.started = [&](pid_t pid, int) { started.push_back(pid); };
    control.ended = [&](int status) { ended.push_back(status); };
    auto collector = make_ptrace_collector(logs.path() / "log");
    return collector->run(command(std::move(arguments), place.path()), control, recorder);
  }
  int status_of(std::vector<std::string> arguments) {
    const auto outcome = run(std::move(arguments));
    if (!outcome) {
      ADD_FAILURE() << outcome.error().line();
      return -1;
    }
    EXPECT_THAT(recorder.unfinished(), IsEmpty());
    EXPECT_EQ(outcome->dropped, 0U);
    return outcome->wait_status;
  }
  int shell(const std::string& script) { return status_of({"/bin/sh", "-c", script}); }

  ProbeFolder place;
  EventRecorder recorder;
  std::vector<pid_t> started;
  std::vector<int> ended;
};

TEST_F(Ptrace, AShellPipeline) {
  place.file("in", "b\na\n");
  EXPECT_EQ(shell("cat < in | sort > out; test -e out"), 0);
  EXPECT_THAT(recorder.lines, UnorderedElementsAre("read T/in", "create T/out"));
  EXPECT_EQ(std::ifstream(place.path("out")).get(), 'a');
}

TEST_F(Ptrace, EventsComeInOrderWithWarningsBefore) {
  place.file("a", "1");
  EXPECT_EQ(shell(": < a; echo 2 > a; echo 3 >> a; mv a b; cp b c; ln b d; rm c"), 0);
  EXPECT_THAT(recorder.lines,
              ElementsAre("read T/a", "change content T/a", "truncate T/a", "change content T/a",
                          "write T/a", "change name T/a", "rename T/a T/b", "read T/b",
                          "create T/c", "link T/b T/d", "change name T/c", "delete T/c"));
}

TEST_F(Ptrace, OnlySuccessfulCallsAreReported) {
  place.directory("d/e");
  place.file("a");
  EXPECT_NE(shell("cat none; mv a d/none/x; rm d; ln none b; mv d d/e/f; exec ./a"), 0);
  EXPECT_THAT(recorder.lines, Not(Contains(HasSubstr("rename T/a"))));
  EXPECT_THAT(recorder.lines, Not(Contains(HasSubstr("rename T/d"))));
  EXPECT_THAT(recorder.lines, Not(Contains("exec T/a")));
  EXPECT_THAT(recorder.lines, Not(Contains(AllOf(HasSubstr("none"), Not(StartsWith("absent "))))));
}

TEST_F(Ptrace, ACreatedFileHasItsStamp) {
  EXPECT_EQ(shell("echo > new"), 0);
  struct stat made {};
  ASSERT_EQ(::stat(place.path("new").c_str(), &made), 0);
  const auto created = recorder.of(RecordOp::kCreate);
  ASSERT_EQ(created.size(), 1U);
  EXPECT_EQ(created[0].stamp.inode, made.st_ino);
  EXPECT_EQ(created[0].stamp.device, made.st_dev);
}

TEST_F(Ptrace, ProcessesAndPrograms) {
  EXPECT_EQ(shell("/bin/true; /bin/echo hello world; exit 3") >> 8, 3);
  const auto processes = recorder.of(RecordOp::kProcess);
  ASSERT_EQ(processes.size(), 3U);
  const pid_t root = processes[0].process;
  EXPECT_EQ(processes[0].parent, ::getpid());
  EXPECT_EQ(processes[1].parent, root);
  EXPECT_EQ(processes[2].parent, root);
  const auto programs = recorder.of(RecordOp::kExec);
  ASSERT_EQ(programs.size(), 3U);
  EXPECT_EQ(programs[2].process, processes[2].process);
  EXPECT_EQ(programs[2].parent, root);
  EXPECT_EQ(programs[2].other, std::string("/bin/echo\0hello\0world", 21));
  const auto ends = recorder.of(RecordOp::kExit);
  ASSERT_EQ(ends.size(), 3U);
  EXPECT_EQ(ends[2].process, root);
  EXPECT_EQ(ends[2].value, 3 << 8);
  EXPECT_EQ(started, std::vector<pid_t>{root});
  EXPECT_EQ(ended, std::vector<int>{3 << 8});
}

TEST_F(Ptrace, StaticPrograms) {
  place.file("in");
  EXPECT_EQ(shell(kStatic + " read in; " + kStatic + " write out"), 0);
  EXPECT_THAT(recorder.lines, ElementsAre("read T/in", "create T/out"));
}

TEST_F(Ptrace, ThreadsAreNotProcesses) {
  place.file("a");
  place.file("b");
  EXPECT_EQ(status_of({kDynamic, "threads", "a", "b"}), 0);
  EXPECT_THAT(recorder.lines, ElementsAre("read T/a", "read T/b"));
  EXPECT_EQ(recorder.of(RecordOp::kProcess).size(), 1U);
  EXPECT_EQ(recorder.of(RecordOp::kExit).size(), 1U);
  for (const RecordedEvent& event : recorder.of(RecordOp::kRead)) {
    EXPECT_EQ(event.process, started.at(0));
    if (event.path == place.path("a")) {
      EXPECT_NE(event.thread, event.process);
    }
  }
}

TEST_F(Ptrace, AThreadThatExecutes) {
  EXPECT_EQ(status_of({kDynamic, "thread-exec", "/bin/true"}), 0);
  EXPECT_EQ(recorder.of(RecordOp::kProcess).size(), 1U);
  const auto programs = recorder.of(RecordOp::kExec);
  ASSERT_EQ(programs.size(), 2U);
  EXPECT_EQ(programs[1].path, std::filesystem::canonical("/bin/true"));
  EXPECT_EQ(programs[1].process, started.at(0));
}

TEST_F(Ptrace, ChildrenAreSeenFromTheirFirstInstruction) {
  place.file("a");
  EXPECT_EQ(status_of({kStatic, "vfork", "a", "/bin/true"}), 0);
  EXPECT_THAT(recorder.lines, ElementsAre("read T/a"));
  const auto processes = recorder.of(RecordOp::kProcess);
  ASSERT_EQ(processes.size(), 2U);
  for (const RecordedEvent& event : recorder.of(RecordOp::kRead)) {
    if (event.path == place.path("a")) {
      EXPECT_EQ(event.process, processes[1].process);
    }
  }
}

TEST_F(Ptrace, ATreeOfProcesses) {
  place.file("a");
  EXPECT_EQ(status_of({kStatic, "tree", "7", "a"}), 0);
  EXPECT_EQ(recorder.of(RecordOp::kProcess).size(), 255U);
  EXPECT_EQ(recorder.lines.size(), 255U);
}

TEST_F(Ptrace, AProcessThatForbidsTracingIsTraced) {
  place.file("a");
  place.file("b");
  EXPECT_EQ(status_of({kStatic, "untraced", "a", "b"}), 0);
  EXPECT_THAT(recorder.lines, ElementsAre("read T/a", "read T/b"));
}

TEST_F(Ptrace, SignalsArriveUnchanged) {
  place.file("a");
  EXPECT_EQ(status_of({kDynamic, "signals", "a"}), 0);
  EXPECT_EQ(recorder.lines.size(), 4U);
  const int status = shell("kill -TERM $$");
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
  EXPECT_EQ(WTERMSIG(shell("kill -KILL $$")), SIGKILL);
}

TEST_F(Ptrace, WhatOutlivesTheCommandIsWaitedFor) {
  EXPECT_EQ(status_of({kDynamic, "orphan", "late"}), 0);
  EXPECT_THAT(recorder.lines, ElementsAre("create T/late"));
  EXPECT_EQ(ended.size(), 1U);
}

TEST_F(Ptrace, AFileThatGetsItsNameLater) {
  EXPECT_EQ(status_of({kDynamic, "unnamed", ".", "named"}), 0);
  struct stat made {};
  ASSERT_EQ(::stat(place.path("named").c_str(), &made), 0);
  const auto created = recorder.of(RecordOp::kCreate);
  ASSERT_EQ(created.size(), 1U);
  EXPECT_EQ(created[0].flags, wire::flag::kUnnamed);
  EXPECT_EQ(created[0].stamp.inode, made.st_ino);
  const auto links = recorder.of(RecordOp::kLink);
  ASSERT_EQ(links.size(), 1U);
  EXPECT_EQ(links[0].other, place.path("named"));
  EXPECT_EQ(links[0].stamp.inode, made.st_ino);
}

TEST_F(Ptrace, A32BitProgram) {
  // open("in", O_RDONLY), then exit with what it returned, over 32-bit calls.
  static constexpr unsigned char kCode[] = {
      0xb8, 5,    0,    0,    0,                       // mov eax, 5 (open)
      0xbb, 0x74, 0x80, 0x04, 0x08,                    // mov ebx, address of "in"
      0x31, 0xc9,                                      // xor ecx, ecx
      0xcd, 0x80,                                      // int 0x80
      0x89, 0xc3,                                      // mov ebx, eax
      0xb8, 1,    0,    0,    0,                       // mov eax, 1 (exit)
      0xcd, 0x80, 0,    0,    0,    0, 0, 0, 0, 0, 0,  // int 0x80; up to 32 bytes
      'i',  'n',  0,    0};
  Elf32_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG "\1\1\1", 7);
  header.e_type = ET_EXEC;
  header.e_machine = EM_386;
  header.e_version = 1;
  header.e_ehsize = sizeof header;
  header.e_phoff = sizeof header;
  header.e_phentsize = sizeof(Elf32_Phdr);
  header.e_phnum = 1;
  constexpr unsigned kBase = 0x08048000;
  header.e_entry = kBase + sizeof header + sizeof(Elf32_Phdr);
  Elf32_Phdr segment{};
  segment.p_type = PT_LOAD;
  segment.p_vaddr = segment.p_paddr = kBase;
  segment.p_filesz = segment.p_memsz = sizeof header + sizeof segment + sizeof kCode;
  segment.p_flags = PF_R | PF_X;
  segment.p_align = 4096;
  {
    std::ofstream file(place.path("narrow"), std::ios::binary);
    file.write(reinterpret_cast<const char*>(&header), sizeof header);
    file.write(reinterpret_cast<const char*>(&segment), sizeof segment);
    file.write(reinterpret_cast<const char*>(kCode), sizeof kCode);
  }
  ::chmod(place.path("narrow").c_str(), 0755);
  place.file("in");
  const int bare = ::system(("cd " + place.path() + " && ./narrow").c_str()) >> 8;
  if (bare > 100) GTEST_SKIP() << "no 32-bit programs in this kernel";
  const int status = shell("./narrow one two; echo $? > status");
  EXPECT_EQ(status, 0);
  EXPECT_THAT(recorder.lines,
              ElementsAre("exec T/narrow", "read T/narrow", "read T/in", "create T/status"));
}

TEST_F(Ptrace, WhatCannotBeStarted) {
  const auto missing = run({"no-such-program-at-all"});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, base::ExitCode::kUsage);
  EXPECT_THAT(missing.error().line(), HasSubstr("no-such-program-at-all"));
  place.file("plain");
  const auto denied = run({"./plain"});
  ASSERT_FALSE(denied);
  EXPECT_THAT(started, IsEmpty());
  EXPECT_THAT(ended, IsEmpty());
  EXPECT_THAT(recorder.events, IsEmpty());
}

TEST_F(Ptrace, AFilterOfTheProgramsOwn) {
  place.file("a");
  EXPECT_EQ(status_of({kStatic, "sandboxed", "a"}), 0);
  EXPECT_THAT(recorder.lines, Contains("read T/a"));
  EXPECT_THAT(recorder.lines, Not(Contains("delete T/a")));
  EXPECT_TRUE(std::filesystem::exists(place.path("a")));
}

TEST_F(Ptrace, WithoutPrivileges) {
  if (::geteuid() != 0) GTEST_SKIP() << "every other test is this one";
  place.file("a");
  ::chmod(place.path().c_str(), 0777);
  const std::vector<std::string> expected{"create T/b", "read T/a"};
  EXPECT_EXIT(
      {
        if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(1);
        ::prctl(PR_SET_DUMPABLE, 1);
        const int status = shell("cat a > b");
        ::_exit(status == 0 && recorder.lines == expected ? 0 : 2);
      },
      ::testing::ExitedWithCode(0), "");
}

// Closes a descriptor at the second exec event.
class ClosingSink : public EventSink {
 public:
  ClosingSink(EventSink& sink, int descriptor) : sink_(sink), descriptor_(descriptor) {}
  void on_event(const Event& event) override {
    sink_.on_event(event);
    if (event.op == RecordOp::kExec && ++execs_ == 2) ::close(descriptor_);
  }
  void before_change(std::string_view path, const wire::Stamp& stamp, Change change) override {
    sink_.before_change(path, stamp, change);
  }

 private:
  EventSink& sink_;
  int descriptor_;
  int execs_ = 0;
};

TEST_F(Ptrace, GoesOnSilentlyWithoutAKeeper) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  int abandoned = 0;
  CollectorCallbacks control;
  control.keeper = ends[0];
  ClosingSink sink(recorder, ends[1]);
  control.abandoned = [&] { ++abandoned; };
  base::testing::TempDir logs;
  const auto outcome =
      make_ptrace_collector(logs.path() / "log")
          ->run(command({"/bin/sh", "-c", "sleep 0.5; echo > b; exit 4"}, place.path()), control,
                sink);
  ::close(ends[0]);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->wait_status, 4 << 8);
  EXPECT_EQ(abandoned, 1);
  EXPECT_EQ(recorder.of(RecordOp::kExec).size(), 2U);  // sh and sleep
  EXPECT_THAT(recorder.lines, IsEmpty());
  EXPECT_TRUE(std::filesystem::exists(place.path("b")));
}

TEST_F(Ptrace, InheritedFilesComeFirst) {
  place.file("in");
  Launch launch = command({"/bin/true"}, place.path());
  launch.inherited.push_back({.descriptor = 0, .readable = true, .path = place.path("in")});
  base::testing::TempDir logs;
  ASSERT_TRUE(make_ptrace_collector(logs.path() / "log")->run(launch, {}, recorder));
  ASSERT_FALSE(recorder.events.empty());
  EXPECT_EQ(recorder.events[0].path, place.path("in"));
  EXPECT_EQ(recorder.events[0].process, recorder.of(RecordOp::kProcess).at(0).process);
}

// Meanwhile a thread of the test starts a child of its own, which the collector must not wait for.
TEST_F(Ptrace, OtherChildrenAreLeftAlone) {
  int status = -1;
  std::thread other([&] { status = ::system("sleep 0.2; exit 5"); });
  EXPECT_EQ(shell("sleep 0.4"), 0);
  other.join();
  EXPECT_EQ(WEXITSTATUS(status), 5);
}

TEST_F(Ptrace, TimeIsCountedOverTheTree) {
  const auto outcome =
      run({"/bin/sh", "-c", "(i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done)"});
  ASSERT_TRUE(outcome);
  EXPECT_GT(outcome->usage.ru_utime.tv_usec + outcome->usage.ru_utime.tv_sec * 1'000'000, 10'000);
  EXPECT_GT(outcome->usage.ru_maxrss, 0);
}

}  // namespace
}  // namespace assay::collect::testing
