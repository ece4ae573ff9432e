// What the eBPF collector adds to a system call: of the command, and of other processes meanwhile.
//
//   ebpf_bench [FOLDER]     needs what eBPF needs (`assay tracers`); makes 20,000 files in FOLDER
//
// A worker times itself: bare, as a traced command, and as an unrelated process while another
// command is traced, in turn, so that other load affects all three alike. Its clock is its
// own processor time, kernel included: what the collector does meanwhile on other processors is not
// in it, and neither is waiting for a processor.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "base/statistics.h"
#include "observe/collect/ebpf/ebpf.h"
#include "observe/collect/ebpf/preflight.h"

namespace {

namespace fs = std::filesystem;
using namespace assay;

constexpr int kFiles = 20'000;
constexpr int kRounds = 25;

struct Work {
  const char* name;
  int times;
  std::function<void(const std::string& folder, int index)> once;
};

std::vector<Work> works(const std::string& folder) {
  static std::array<char, 65536> buffer{};
  static const int file = ::open((folder + "/0").c_str(), O_RDWR);
  const auto open_close = [](const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY);
    if (fd < 0) std::exit(3);
    ::close(fd);
  };
  return {
      {"open+close, distinct files", kFiles,
       [=](const std::string& in, int i) { open_close(in + "/" + std::to_string(i)); }},
      {"open+close, one file", 25'000, [=](const std::string& in, int) { open_close(in + "/0"); }},
      {"getppid", 200'000, [](const std::string&, int) { ::getppid(); }},
      {"pread of 1 byte", 200'000,
       [](const std::string&, int) { (void)!::pread(file, buffer.data(), 1, 0); }},
      {"pread of 64 KiB", 10'000,
       [](const std::string&, int) { (void)!::pread(file, buffer.data(), buffer.size(), 0); }},
      {"pwrite of 4 KiB", 50'000,
       [](const std::string&, int) { (void)!::pwrite(file, buffer.data(), 4096, 0); }},
  };
}

double own_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

// Times every kind of work and writes the nanoseconds of one, a line each.
int worker(const std::string& folder, const std::string& result) {
  std::ofstream out(result);
  for (const Work& work : works(folder)) {
    const double begin = own_ns();
    for (int i = 0; i < work.times; ++i) work.once(folder, i);
    out << (own_ns() - begin) / work.times << '\n';
  }
  return out.good() ? 0 : 3;
}

class Ignore : public collect::EventSink {
  void on_event(const collect::Event&) override {}
  void before_change(std::string_view, const wire::Stamp&, collect::Change) override {}
};

pid_t traced(const std::vector<std::string>& words, const fs::path& log) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  Ignore ignore;
  const collect::Launch launch{.command = words, .environment = {"PATH=/usr/bin:/bin"}};
  const auto outcome = collect::make_ebpf_collector(log)->run(launch, {}, ignore);
  if (!outcome) fmt::print(stderr, "{}\n", outcome.error().line());
  if (outcome && outcome->dropped > 0) fmt::print(stderr, "dropped {}\n", outcome->dropped);
  ::_exit(outcome && outcome->wait_status == 0 ? 0 : 3);
}

pid_t bare(std::vector<std::string> words) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv(argv[0], argv.data());
  ::_exit(127);
}

void expect_success(pid_t child) {
  int status = -1;
  ::waitpid(child, &status, 0);
  if (status == 0) return;
  fmt::print(stderr, "ebpf_bench: a run failed\n");
  std::exit(3);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::string(argv[1]) == "--worker") return worker(argv[2], argv[3]);
  const collect::Preflight found = collect::ebpf_preflight();
  if (!found.available) {
    fmt::print(stderr, "ebpf_bench: {}\n", found.reason);
    return 3;
  }
  std::string pattern = (argc > 1 ? std::string(argv[1]) : "/tmp") + "/assay-ebpf-bench-XXXXXX";
  const fs::path folder = ::mkdtemp(pattern.data());
  for (int i = 0; i < kFiles; ++i) std::ofstream(folder / std::to_string(i)) << i;
  std::ofstream(folder / "0") << std::string(65536, 'x');
  const std::string result = folder / "result";
  const std::vector<std::string> words = {fs::canonical("/proc/self/exe"), "--worker", folder,
                                          result};
  const std::vector<Work> list = works(folder);
  constexpr std::array<const char*, 3> kKinds = {"bare", "traced", "other"};
  std::vector<std::array<std::vector<double>, 3>> times(list.size());
  for (int round = 0; round < kRounds + 1; ++round) {  // the first warms up
    for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
      const fs::path log = folder / fmt::format("log-{}-{}", round, kind);
      pid_t other = 0;
      if (kind == 2) {
        other = traced({"sleep", "1000"}, log);
        ::usleep(300'000);
      }
      expect_success(kind == 1 ? traced(words, log) : bare(words));
      if (other > 0) {
        // Only what we started: the sleeping command is the collector's child.
        std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", other));
        pid_t sleeper = 0;
        if (children >> sleeper) ::kill(sleeper, SIGTERM);
        ::waitpid(other, nullptr, 0);
      }
      std::ifstream in(result);
      for (auto& work : times) {
        double ns = 0;
        in >> ns;
        if (round > 0) work[kind].push_back(ns);
      }
    }
  }
  fmt::print(
      "{}; {} rounds, ns of one: the median of bare; what is added, as the median of the rounds' "
      "differences and their quartiles\n\n"
      "| | bare | as the command | other processes |\n|---|---|---|---|\n",
      found.reason, kRounds);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto added = [&](std::size_t kind) {
      std::vector<double> differences;
      for (std::size_t round = 0; round < kRounds; ++round) {
        differences.push_back(times[i][kind][round] - times[i][0][round]);
      }
      return fmt::format("{:+.0f} ({:+.0f} … {:+.0f})", base::quantile(differences, 0.5),
                         base::quantile(differences, 0.25), base::quantile(differences, 0.75));
    };
    fmt::print("| {} | {:.0f} | {} | {} |\n", list[i].name, base::quantile(times[i][0], 0.5),
               added(1), added(2));
  }
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  return 0;
}
