// The eBPF collector with real commands, compared with strace's results of every open.
#include "observe/collect/ebpf/ebpf.h"
#include "observe/collect/ebpf/preflight.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "base/testing/temp_dir.h"
#include "base/unique_fd.h"
#include "observe/collect/ebpf/programs.h"

namespace assay::collect {
namespace {

namespace fs = std::filesystem;
using base::testing::TempDir;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Key;
using ::testing::UnorderedElementsAre;
using wire::RecordOp;

struct RecordedEvent {
  RecordOp op;
  std::uint16_t flags;
  pid_t process, parent;
  int value;
  wire::Stamp stamp;
  std::string path, other;
};

class EventRecorder : public EventSink {
 public:
  void on_event(const Event& event) override {
    events.push_back({event.op, event.flags, event.process, event.parent, event.value, event.stamp,
                      std::string(event.path), std::string(event.other)});
  }
  void before_change(std::string_view path, const wire::Stamp&, Change) override {
    changes.emplace_back(path);
  }

  std::vector<RecordedEvent> events;
  std::vector<std::string> changes;

  [[nodiscard]] std::set<std::string> paths(RecordOp op) const {
    std::set<std::string> out;
    for (const RecordedEvent& event : events) {
      if (event.op == op) out.insert(event.path);
    }
    return out;
  }
  [[nodiscard]] std::size_t count(RecordOp op) const {
    return static_cast<std::size_t>(std::count_if(
        events.begin(), events.end(), [&](const RecordedEvent& t) { return t.op == op; }));
  }
  [[nodiscard]] const RecordedEvent* find(RecordOp op, const std::string& path) const {
    for (const RecordedEvent& event : events) {
      if (event.op == op && event.path == path) return &event;
    }
    return nullptr;
  }
};

class EbpfTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const Preflight found = ebpf_preflight(); !found.available) GTEST_SKIP() << found.reason;
  }

  CollectorResult run(std::vector<std::string> arguments, EventRecorder& recorder) {
    Launch launch{
        .command = std::move(arguments), .environment = {"PATH=/usr/bin:/bin"}, .directory = {}};
    const auto log = logs_.path() / std::to_string(++runs_);
    auto outcome = make_ebpf_collector(log)->run(launch, {}, recorder);
    EXPECT_TRUE(outcome.has_value()) << outcome.error().line();
    return outcome ? *outcome : CollectorResult{};
  }
  CollectorResult subject(std::vector<std::string> arguments, EventRecorder& recorder) {
    arguments.insert(arguments.begin(), ASSAY_EBPF_SUBJECT);
    return run(std::move(arguments), recorder);
  }

  // FOLDER/0 … COUNT-1
  std::set<std::string> numbered(int count) {
    std::set<std::string> paths;
    for (int i = 0; i < count; ++i) paths.insert(make(std::to_string(i)));
    return paths;
  }
  std::string make(const std::string& name) {
    const fs::path path = folder() / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << name;
    return path;
  }
  fs::path folder() { return folder_.path(); }
  // Only what is inside the test's folder.
  std::set<std::string> mine(const std::set<std::string>& paths) {
    std::set<std::string> out;
    for (const std::string& path : paths) {
      if (path.starts_with(folder().string() + "/")) out.insert(path);
    }
    return out;
  }

  TempDir folder_;
  TempDir logs_;
  int runs_ = 0;
};

wire::Stamp stamp_at(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  const auto ns = [](const timespec& time) { return time.tv_sec * 1'000'000'000LL + time.tv_nsec; };
  return {status.st_dev, status.st_ino, status.st_size, ns(status.st_mtim), ns(status.st_ctim)};
}

// The regular files that a command's opens returned, as strace saw them.
std::set<std::string> strace_opens(const std::string& command, const fs::path& output) {
  const std::string line = fmt::format(
      "env -i PATH=/usr/bin:/bin strace -f -y -qq -e trace=open,openat,openat2,creat "
      "-e signal=none -s 5000 -o {} {} > /dev/null",
      output.string(), command);
  EXPECT_EQ(std::system(line.c_str()), 0) << line;
  std::set<std::string> paths;
  std::ifstream stream(output);
  for (std::string text; std::getline(stream, text);) {
    const std::size_t result = text.rfind("= ");
    const std::size_t open = text.find('<', result);
    if (result == std::string::npos || open == std::string::npos) continue;
    std::string path = text.substr(open + 1, text.rfind('>') - open - 1);
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
        !path.starts_with("/proc/")) {
      paths.insert(path);
    }
  }
  return paths;
}

TEST_F(EbpfTest, ReportsTheLifeOfTheCommand) {
  EventRecorder recorder;
  const CollectorResult outcome =
      run({"sh", "-c", "/bin/cat /dev/null; (exit 3); exit 5"}, recorder);
  EXPECT_EQ(WEXITSTATUS(outcome.wait_status), 5);
  EXPECT_THAT(outcome.missed, IsEmpty());
  EXPECT_EQ(outcome.dropped, 0U);

  const RecordedEvent* cat = recorder.find(RecordOp::kExec, fs::canonical("/bin/cat"));
  ASSERT_NE(cat, nullptr);
  EXPECT_EQ(cat->other, std::string("/bin/cat\0/dev/null", 18));
  EXPECT_EQ(cat->stamp, stamp_at("/bin/cat"));
  EXPECT_EQ(recorder.count(RecordOp::kExec), 2U);

  std::vector<int> ends;
  for (const RecordedEvent& event : recorder.events) {
    if (event.op == RecordOp::kExit) ends.push_back(WEXITSTATUS(event.value));
  }
  EXPECT_THAT(ends, UnorderedElementsAre(0, 3, 5));
  EXPECT_EQ(recorder.count(RecordOp::kProcess), 3U);  // the command and two children
}

// What the collector has mapped when it forks counts as the command's for ever.
TEST_F(EbpfTest, TheRingIsNotTheCommandsMemory) {
  EventRecorder recorder;
  const CollectorResult outcome = run({"/bin/true"}, recorder);
  // A plain child of this process: with sanitizers that is a lot.
  const pid_t child = ::fork();
  if (child == 0) ::execl("/bin/true", "true", nullptr);
  rusage plain{};
  ASSERT_EQ(::wait4(child, nullptr, 0, &plain), child);
  EXPECT_GT(outcome.usage.ru_maxrss, 0);
  EXPECT_LT(outcome.usage.ru_maxrss, plain.ru_maxrss + kAssayRingSize / 1024);
}

TEST_F(EbpfTest, AgreesWithStraceOnAShellPipeline) {
  make("in");
  const std::string script = folder() / "script.sh";
  std::ofstream(script) << "#!/bin/sh\ncd " << folder().string()
                        << "\ncat in | sort > out; (cp in copy; grep -r i . > found; ls -R)\n";
  fs::permissions(script, fs::perms::owner_all);
  const auto expected = strace_opens(script, logs_.path() / "strace");
  for (const char* made : {"out", "copy", "found"}) fs::remove(folder() / made);

  EventRecorder recorder;
  const CollectorResult outcome = run({script}, recorder);
  EXPECT_THAT(outcome.missed, IsEmpty());
  std::set<std::string> seen = recorder.paths(RecordOp::kRead);
  seen.merge(recorder.paths(RecordOp::kCreate));
  seen.merge(recorder.paths(RecordOp::kTruncate));
  seen.merge(recorder.paths(RecordOp::kWrite));
  EXPECT_THAT(seen, IsSupersetOf(expected));
  // Beyond strace's opens there are only the programs and what the kernel read to run them.
  std::set<std::string> more = recorder.paths(RecordOp::kExec);
  more.insert({"/bin/sh", "/lib64/ld-linux-x86-64.so.2"});
  for (const std::string& path : seen) {
    // /proc has other numbers each time.
    EXPECT_TRUE(expected.contains(path) || more.contains(path) || path.starts_with("/proc/"))
        << path;
  }
  EXPECT_THAT(recorder.paths(RecordOp::kExec), Contains(script));
  EXPECT_THAT(mine(recorder.paths(RecordOp::kCreate)),
              UnorderedElementsAre(folder() / "out", folder() / "copy", folder() / "found"));
}

TEST_F(EbpfTest, SeesEveryWayToOpen) {
  for (const char* name : {"written", "both", "cut", "path", "openat2", "relative", "target"}) {
    make(name);
  }
  fs::create_symlink("target", folder() / "symlink");
  fs::create_hard_link(folder() / "relative", folder() / "hard");
  EventRecorder recorder;
  subject({"ways", folder()}, recorder);
  EXPECT_THAT(mine(recorder.paths(RecordOp::kRead)),
              UnorderedElementsAre(folder() / "both", folder() / "openat2", folder() / "relative",
                                   folder() / "target", folder() / "hard"));
  EXPECT_NE(recorder.find(RecordOp::kRead, folder() / "both")->flags & wire::flag::kWritable, 0);
  EXPECT_EQ(recorder.find(RecordOp::kRead, folder() / "hard")->flags, 0);
  std::set<std::string> created = recorder.paths(RecordOp::kCreate);
  created.erase(folder());  // O_TMPFILE
  EXPECT_THAT(created, UnorderedElementsAre(folder() / "created", folder() / "exclusive",
                                            folder() / "creat"));
  EXPECT_THAT(mine(recorder.paths(RecordOp::kWrite)), Contains(folder() / "written"));
  const RecordedEvent* read = recorder.find(RecordOp::kRead, folder() / "openat2");
  EXPECT_EQ(read->stamp, stamp_at(folder() / "openat2"));
  // memfd has no path
  for (const RecordedEvent& event : recorder.events)
    EXPECT_EQ(event.path.find("memory"), std::string::npos);
}

TEST_F(EbpfTest, TenThousandFilesOnceEach) {
  const auto expected = numbered(10'000);
  EventRecorder recorder;
  const CollectorResult outcome = subject({"many", folder(), "10000", "3"}, recorder);
  EXPECT_THAT(outcome.missed, IsEmpty());
  EXPECT_EQ(mine(recorder.paths(RecordOp::kRead)), expected);
  // Repeated opens are reported again only if two files share a slot of the table.
  EXPECT_LT(recorder.count(RecordOp::kRead), 16'000U);
}

TEST_F(EbpfTest, ThreadsBelongToTheirProcess) {
  const auto expected = numbered(50);
  EventRecorder recorder;
  const CollectorResult outcome = subject({"threads", folder(), "50"}, recorder);
  EXPECT_THAT(outcome.missed, IsEmpty());
  EXPECT_EQ(mine(recorder.paths(RecordOp::kRead)), expected);
  std::set<pid_t> processes;
  for (const RecordedEvent& event : recorder.events) processes.insert(event.process);
  EXPECT_EQ(processes.size(), 1U);
  EXPECT_EQ(recorder.count(RecordOp::kExit), 1U);
}

TEST_F(EbpfTest, FollowsChildrenThatOutliveTheirParents) {
  const auto expected = numbered(300);
  EventRecorder recorder;
  const CollectorResult outcome = subject({"chain", folder(), "300"}, recorder);
  EXPECT_THAT(outcome.missed, IsEmpty());
  EXPECT_EQ(mine(recorder.paths(RecordOp::kRead)), expected);
  EXPECT_EQ(recorder.count(RecordOp::kProcess), 301U);
  EXPECT_EQ(recorder.count(RecordOp::kExit), 301U);
  std::set<pid_t> known;
  for (const RecordedEvent& event : recorder.events) {
    if (event.op != RecordOp::kProcess) continue;
    EXPECT_TRUE(known.empty() || known.contains(event.parent)) << event.parent;
    known.insert(event.process);
  }
}

TEST_F(EbpfTest, FollowsThousandsOfProcesses) {
  const auto expected = numbered(3000);
  EventRecorder recorder;
  const CollectorResult outcome = subject({"forks", folder(), "3000"}, recorder);
  EXPECT_THAT(outcome.missed, IsEmpty());
  EXPECT_EQ(mine(recorder.paths(RecordOp::kRead)), expected);
  EXPECT_EQ(recorder.count(RecordOp::kExit), 3001U);
}

TEST_F(EbpfTest, TheLastThreadEndsTheProcess) {
  EventRecorder recorder;
  const CollectorResult outcome = subject({"outlived", "."}, recorder);
  EXPECT_EQ(WEXITSTATUS(outcome.wait_status), 7);
  ASSERT_EQ(recorder.count(RecordOp::kExit), 1U);
  EXPECT_EQ(recorder.events.back().value, outcome.wait_status);
}

TEST_F(EbpfTest, AReusedInodeIsAnotherFile) {
  EventRecorder recorder;
  subject({"reuse", folder(), "100"}, recorder);
  EXPECT_EQ(recorder.count(RecordOp::kCreate), 100U);
  std::size_t reads = 0;
  for (const RecordedEvent& event : recorder.events) {
    if (event.op == RecordOp::kRead && event.path == folder() / "again") ++reads;
  }
  EXPECT_EQ(reads, 100U);
}

TEST_F(EbpfTest, PathsUpToTheKernelsLimit) {
  rlimit limit{};  // remove_all holds every level open
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  // As long as open() can take (4095 bytes), by long names and by short ones.
  for (const std::string& name : {std::string(200, 'n'), std::string("d")}) {
    fs::path path = folder() / "deep";
    fs::create_directory(path);
    while (path.native().size() + 1 + name.size() + 5 <= 4095) {
      path /= name;
      fs::create_directory(path);
    }
    const std::string file = path / std::string(4094 - path.native().size(), 'f');
    ASSERT_EQ(file.size(), 4095U);
    std::ofstream(file) << "x";
    EventRecorder recorder;
    const CollectorResult outcome = run({"/bin/cat", file}, recorder);
    EXPECT_THAT(outcome.missed, IsEmpty());
    EXPECT_THAT(recorder.paths(RecordOp::kRead), Contains(file));
    fs::remove_all(folder() / "deep");
  }
}

TEST_F(EbpfTest, CountsWhatIsDeeperThanAnyPath) {
  const std::string name(200, 'n');
  const int before = ::open(".", O_PATH);
  ASSERT_EQ(::chdir(folder().c_str()), 0);
  for (int i = 0; i < 25; ++i) {
    ASSERT_EQ(::mkdir(name.c_str(), 0700), 0);
    ASSERT_EQ(::chdir(name.c_str()), 0);
  }
  ::close(::open("file", O_WRONLY | O_CREAT, 0600));
  ASSERT_EQ(::fchdir(before), 0);
  ::close(before);
  EventRecorder recorder;
  const CollectorResult outcome = subject({"descend", folder(), name}, recorder);
  EXPECT_EQ(outcome.dropped, 1U);
  ASSERT_EQ(outcome.missed.size(), 1U);
  EXPECT_EQ(outcome.missed[0].what, "dropped");
}

TEST_F(EbpfTest, CrossesMounts) {
  const fs::path outer = folder() / "outer";
  const fs::path inner = folder() / "inner/real";
  fs::create_directories(outer);
  fs::create_directories(inner);
  std::ofstream(inner / "file") << "x";
  if (::mount(inner.c_str(), outer.c_str(), nullptr, MS_BIND, nullptr) != 0) {
    GTEST_SKIP() << "mounting is not allowed here";
  }
  EventRecorder recorder;
  const CollectorResult outcome = run({"/bin/cat", outer / "file", inner / "file"}, recorder);
  ::umount2(outer.c_str(), MNT_DETACH);
  EXPECT_THAT(mine(recorder.paths(RecordOp::kRead)),
              UnorderedElementsAre(outer / "file", inner / "file"));
  EXPECT_THAT(outcome.missed, IsEmpty());
}

TEST_F(EbpfTest, ReportsPathsThatLeadToOtherFiles) {
  EventRecorder recorder;
  const std::string script = fmt::format(
      "mount -t tmpfs none {0} && echo x > {0}/hidden && cat {0}/hidden", folder().string());
  const CollectorResult outcome = run({"unshare", "-m", "sh", "-c", script}, recorder);
  if (outcome.wait_status != 0) GTEST_SKIP() << "no mount namespaces here";
  ASSERT_EQ(outcome.missed.size(), 1U);
  EXPECT_EQ(outcome.missed[0].what, "namespace");
}

TEST_F(EbpfTest, SeesIoUring) {
  for (const char* name : {"inline", "worker", "written"}) make(name);
  EventRecorder recorder;
  const CollectorResult outcome = subject({"uring", folder()}, recorder);
  if (WEXITSTATUS(outcome.wait_status) == 77) GTEST_SKIP() << "io_uring is not allowed here";
  ASSERT_EQ(outcome.wait_status, 0);
  EXPECT_THAT(mine(recorder.paths(RecordOp::kRead)),
              UnorderedElementsAre(folder() / "inline", folder() / "worker"));
  EXPECT_THAT(mine(recorder.paths(RecordOp::kWrite)), ElementsAre(folder() / "written"));
  EXPECT_THAT(mine(recorder.paths(RecordOp::kCreate)), ElementsAre(folder() / "created"));
  ASSERT_EQ(outcome.missed.size(), 1U);  // the content that was there before
  EXPECT_EQ(outcome.missed[0].what, "unseen");
}

TEST_F(EbpfTest, ContentIsOfferedBeforeItIsLost) {
  // Whether the sink could still read what was there: the oracle is the file itself.
  class Reader : public EventRecorder {
   public:
    void before_change(std::string_view path, const wire::Stamp& stamp, Change change) override {
      EventRecorder::before_change(path, stamp, change);
      std::ifstream stream{std::string(path)};
      contents.emplace_back(std::istreambuf_iterator<char>(stream),
                            std::istreambuf_iterator<char>());
      reads_before.push_back(paths(RecordOp::kRead).contains(std::string(path)));
    }
    std::vector<std::string> contents;
    std::vector<bool> reads_before;
  } reader;
  const std::string file = make("kept");
  const CollectorResult outcome = run(
      {"sh", "-c", fmt::format("read x < {0}; echo new > {0}; echo more >> {0}", file)}, reader);
  EXPECT_THAT(outcome.missed, IsEmpty());
  EXPECT_THAT(reader.contents, ElementsAre("kept", "new\n"));
  EXPECT_THAT(reader.reads_before, ElementsAre(true, true));  // earlier events came first
  EXPECT_EQ(reader.count(RecordOp::kTruncate),
            1U);  // by the gate, and not a second time by the programs
}

// A named pipe that both sides have open for the whole test.
class Signal {
 public:
  explicit Signal(const fs::path& path) {
    EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
    fd_ = base::UniqueFd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  }
  void give() const { EXPECT_EQ(::write(fd_.get(), "\n", 1), 1); }
  [[nodiscard]] bool wait(std::chrono::milliseconds most) const {
    pollfd poll{.fd = fd_.get(), .events = POLLIN, .revents = 0};
    return ::poll(&poll, 1, static_cast<int>(most.count())) == 1;
  }

 private:
  base::UniqueFd fd_;
};

TEST_F(EbpfTest, LosesNothingWhileTheSinkThinks) {
  // More messages than the ring holds, all while the sink is held up by a file about to be
  // overwritten.
  class Slow : public EventRecorder {
   public:
    Slow(std::string file, const fs::path& folder)
        : file_(std::move(file)), held_(folder / "held"), done_(folder / "done") {}
    void before_change(std::string_view path, const wire::Stamp&, Change) override {
      if (path != file_) return;
      held_.give();
      EXPECT_TRUE(done_.wait(std::chrono::seconds(90)));
    }

   private:
    std::string file_;
    Signal held_;
    Signal done_;
  };
  Slow slow(make("kept"), folder());
  // 80,000 messages of more than 300 bytes. The pauses leave a loaded machine time to run the
  // thread that empties the ring.
  const std::string name(250, 'n');
  for (int i = 0; i < 2'000; ++i) make(fmt::format("{}/{}", name, i));
  std::ofstream(folder() / "script.sh")
      << "cd " << folder().string() << "; exec 8<>held 9<>done\n"
      << "echo new > kept & read x <&8\n"
      << "i=0; while [ $i -lt 40 ]; do i=$((i+1))\n"
      << ASSAY_EBPF_SUBJECT << " many " << (folder() / name).string()
      << " 2000; sleep 0.1; done; echo >&9; wait\n";
  const CollectorResult outcome = run({"sh", folder() / "script.sh"}, slow);
  EXPECT_THAT(outcome.missed, IsEmpty());
  EXPECT_GE(slow.count(RecordOp::kRead), 80'000U);
}

TEST_F(EbpfTest, FilesOfAMovedDirectoryAreReportedAgain) {
  make("old/file");
  EventRecorder recorder;
  const std::string script = fmt::format(
      "cd {0}; read x < old/file; read x < old/file; /bin/mv old new; read x < new/file",
      folder().string());
  run({"sh", "-c", script}, recorder);
  EXPECT_THAT(mine(recorder.paths(RecordOp::kRead)),
              UnorderedElementsAre(folder() / "old/file", folder() / "new/file"));
}

TEST_F(EbpfTest, IgnoresOtherProcesses) {
  make("mine");
  make("other");
  const std::string log = logs_.path() / "ready";
  const pid_t other = ::fork();
  if (other == 0) {
    for (int i = 0; i < 200; ++i) {
      ::close(::open((folder() / "other").c_str(), O_RDONLY));
      ::usleep(1000);
    }
    ::_exit(0);
  }
  EventRecorder recorder;
  run({"sh", "-c", fmt::format("cat {}; sleep 0.1", (folder() / "mine").string())}, recorder);
  ::kill(other, SIGKILL);
  ::waitpid(other, nullptr, 0);
  EXPECT_THAT(mine(recorder.paths(RecordOp::kRead)), ElementsAre(folder() / "mine"));
}

TEST_F(EbpfTest, AMissingProgram) {
  EventRecorder recorder;
  const Launch launch{.command = {"no-such-program"}, .environment = {}, .directory = {}};
  const auto outcome = make_ebpf_collector(logs_.path() / "log")->run(launch, {}, recorder);
  ASSERT_FALSE(outcome.has_value());
  EXPECT_EQ(outcome.error().code, base::ExitCode::kUsage);
}

}  // namespace
}  // namespace assay::collect
