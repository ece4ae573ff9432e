// What an open costs: bare, under a seccomp filter that stops nothing, under the gate with the
// shim, and under the gate without it. One process each; they take turns, so that what disturbs one
// disturbs all. Run by bench/open.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/statistics.h"
#include "observe/shim/testing/harness.h"

namespace {

namespace fs = std::filesystem;
using assay::shim::testing::Gate;

enum class Task : char {
  kDistinct = 'd',
  kRelative = 'r',
  kRepeated = 'o',
  kCreate = 'c',
  kEnd = 'q'
};
struct Named {
  Task task;
  const char* name;
};
constexpr Named kTasks[] = {
    {Task::kDistinct, "distinct files, by absolute path"},
    {Task::kRelative, "distinct files, by relative path"},
    {Task::kRepeated, "one file again and again"},
    {Task::kCreate, "new files"},
};
constexpr int kFiles = 2000;

double now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

[[noreturn]] void fail(const std::string& what) {
  fmt::print(stderr, "open_bench: {}\n", what);
  _exit(3);
}

// One round of a task, in ns per open and close. The names of each round differ from those of the
// rounds before by their spelling, so that no open of a "distinct" file is a repeated one.
double round_ns(Task task, const fs::path& folder, int round) {
  const std::string absolute = folder.string() + "/";
  std::vector<std::string> names;
  const std::string dots = [&] {
    std::string text;
    for (int bits = round + 1; bits > 0; bits /= 2) text += bits % 2 == 0 ? "./" : "/";
    return text;
  }();
  for (int i = 0; i < kFiles; ++i) {
    switch (task) {
      case Task::kDistinct:
        names.push_back(fmt::format("{}{}f{}", absolute, dots, i));
        break;
      case Task::kRelative:
        names.push_back(fmt::format("./{}f{}", dots, i));
        break;
      case Task::kRepeated:
        names.push_back(absolute + "f0");
        break;
      default:
        names.push_back(fmt::format("{}new{}-{}", absolute, getpid(), i));
        break;
    }
  }
  const int flags = task == Task::kCreate ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY;
  const double begin = now_ns();
  for (const std::string& name : names) {
    const int file = open(name.c_str(), flags, 0666);
    if (file < 0) fail("cannot open " + name);
    close(file);
  }
  const double elapsed = now_ns() - begin;
  if (task == Task::kCreate) {
    for (const std::string& name : names) unlink(name.c_str());
  }
  return elapsed / kFiles;
}

// The process that is measured: a task comes in, its time goes out.
int serve(const fs::path& folder) {
  if (chdir(folder.c_str()) != 0) fail("chdir");
  char order[2];
  while (read(3, order, 2) == 2 && static_cast<Task>(order[0]) != Task::kEnd) {
    const double result = round_ns(static_cast<Task>(order[0]), folder, order[1]);
    if (write(3, &result, sizeof result) != sizeof result) return 1;
  }
  return 0;
}

struct Mode {
  const char* name;
  Gate gate;
  bool shim;
};
constexpr Mode kModes[] = {
    {"bare", Gate::kNone, false},
    {"filter", Gate::kPass, false},
    {"shim+filter", Gate::kStop, true},
    {"stopped", Gate::kStop, false},
};

struct Measured {
  int socket = -1;
  std::unique_ptr<std::thread> thread;
  double ask(Task task, int round) const {
    const char order[2] = {static_cast<char>(task), static_cast<char>(round)};
    double result = 0;
    if (write(socket, order, 2) != 2) fail("a measured process is gone");
    if (task == Task::kEnd) return 0;
    if (read(socket, &result, sizeof result) != sizeof result) fail("a measured process failed");
    return result;
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "serve") return serve(argv[2]);
  if (argc != 3) fail("usage: open_bench FOLDER ROUNDS");
  const fs::path folder = fs::absolute(argv[1]);
  const int rounds = std::stoi(argv[2]);
  for (int i = 0; i < kFiles; ++i) {
    const int file = open((folder / fmt::format("f{}", i)).c_str(), O_WRONLY | O_CREAT, 0666);
    if (file < 0 || write(file, "x", 1) != 1) fail("cannot write into " + folder.string());
    close(file);
  }
  // Enough for every open of every round to be recorded.
  assay::shim::testing::ShimLog log(folder / "log",
                                    std::uint64_t(rounds + 8) * kFiles * std::size(kTasks) * 512);

  std::vector<Measured> measured;
  for (const Mode& mode : kModes) {
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) fail("socketpair");
    assay::shim::testing::Command command;
    command.arguments = {fs::read_symlink("/proc/self/exe"), "serve", folder};
    command.gate = mode.gate;
    command.keep = sockets[1];
    if (mode.shim) {
      command.log = &log;
      command.library = ASSAY_SHIM;
    }
    auto thread = std::make_unique<std::thread>([command, end = sockets[1]] {
      assay::shim::testing::run(command);
      close(end);
    });
    measured.push_back({sockets[0], std::move(thread)});
  }

  for (const Named& task : kTasks) {
    std::vector<std::vector<double>> times(std::size(kModes));
    for (int round = -3; round < rounds; ++round) {
      for (std::size_t i = 0; i < measured.size(); ++i) {
        const double ns = measured[i].ask(task.task, round + 3);
        if (round >= 0) times[i].push_back(ns);
      }
    }
    fmt::print("{}\n", task.name);
    const double bare = assay::base::median(times[0]);
    for (std::size_t i = 0; i < measured.size(); ++i) {
      const double here = assay::base::median(times[i]);
      std::vector<double> over;
      for (std::size_t r = 0; r < times[i].size(); ++r) over.push_back(times[i][r] - times[0][r]);
      fmt::print("  {:<14}{:>8.0f} ns{:>+9.0f} ns over bare\n", kModes[i].name, here,
                 i == 0 ? here - bare : assay::base::median(over));
    }
  }
  for (Measured& one : measured) one.ask(Task::kEnd, 0);
  for (Measured& one : measured) one.thread->join();
  const auto records = log.records().size();
  fmt::print("records in the log: {}, dropped: {}\n", records, log.header().dropped.load());
}
