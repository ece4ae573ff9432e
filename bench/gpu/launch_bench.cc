// What a library in front of the driver adds to a launch, an allocation and a free: bare, through a
// library that only jumps, counting, counting with a share, and any other given by path, in turn,
// over a driver that does nothing.
//
//   gpu_launch_bench [--rounds N] [--preload LIBRARY]…     prints Markdown tables
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/statistics.h"
#include "observe/wire/gpu_region.h"

namespace {

struct Way {
  std::string name;
  std::string settings;  // in front of the command
};

std::string output_of(const std::string& line) {
  std::string text;
  FILE* output = ::popen(line.c_str(), "r");
  char buffer[4096];
  for (std::size_t size = 0; (size = std::fread(buffer, 1, sizeof buffer, output)) > 0;) {
    text.append(buffer, size);
  }
  ::pclose(output);
  return text;
}

std::vector<double> numbers(const std::string& text) {
  std::vector<double> out;
  const char* at = text.c_str();
  for (char* end = nullptr;; at = end) {
    const double value = std::strtod(at, &end);
    if (end == at) return out;
    out.push_back(value);
  }
}

struct Spread {
  std::vector<double> values;
  [[nodiscard]] double at(double share) const { return assay::base::quantile(values, share); }
};

// Rows: medians with quartiles, and the minimum; each with its difference to the first variant.
void print(const std::string& title, const std::vector<Way>& ways, std::vector<Spread> spreads) {
  fmt::print(
      "\n| {} | median ns | quartiles | added | least | added |\n|---|---|---|---|---|---|\n",
      title);
  const double bare = spreads.front().at(0.5);
  const double least = spreads.front().at(0);
  for (std::size_t i = 0; i < ways.size(); ++i) {
    fmt::print("| {} | {:.2f} | {:.2f}–{:.2f} | {:+.2f} | {:.2f} | {:+.2f} |\n", ways[i].name,
               spreads[i].at(0.5), spreads[i].at(0.25), spreads[i].at(0.75),
               spreads[i].at(0.5) - bare, spreads[i].at(0), spreads[i].at(0) - least);
  }
}

// One table per column of what the load prints; of several threads, their mean.
void measure(const std::vector<Way>& ways, const std::string& words, int rounds,
             const std::vector<std::string>& titles) {
  std::vector<std::vector<Spread>> spreads(titles.size(), std::vector<Spread>(ways.size()));
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < ways.size(); ++i) {
      const std::vector<double> got =
          numbers(output_of(ways[i].settings + " " ASSAY_LOAD " " + words));
      if (titles.size() == 1) {
        double sum = 0;
        for (const double value : got) sum += value;
        spreads[0][i].values.push_back(sum / static_cast<double>(got.size()));
        continue;
      }
      for (std::size_t k = 0; k < titles.size(); ++k) spreads[k][i].values.push_back(got.at(k));
    }
  }
  for (std::size_t k = 0; k < titles.size(); ++k) print(titles[k], ways, spreads[k]);
}

double now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

// Durations of processes that are started at once and launch one kernel each.
std::vector<double> start_together(const Way& way, int processes) {
  const std::string line = "exec env " + way.settings + " " ASSAY_LOAD " launch 1 1 >/dev/null";
  std::map<pid_t, double> started;
  for (int i = 0; i < processes; ++i) {
    const double now = now_ms();
    const pid_t child = ::fork();
    if (child == 0) {
      ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
      ::_exit(127);
    }
    started[child] = now;
  }
  std::vector<double> took;
  for (pid_t child = 0; (child = ::wait(nullptr)) > 0;) took.push_back(now_ms() - started[child]);
  return took;
}

// Every round has a new region, as a run has.
void measure_starts(const std::vector<Way>& ways, int processes, int rounds, int region) {
  std::vector<Spread> spreads(ways.size());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < ways.size(); ++i) {
      if (::ftruncate(region, 0) != 0 || !assay::wire::make_gpu_region(region)) return;
      for (const double took : start_together(ways[i], processes)) {
        spreads[i].values.push_back(took);
      }
    }
  }
  fmt::print("\n| {} started at once, until each has launched and ended | median ms | p99 ms |\n",
             processes == 1 ? "a process" : fmt::format("{} processes", processes));
  fmt::print("|---|---|---|\n");
  for (std::size_t i = 0; i < ways.size(); ++i) {
    fmt::print("| {} | {:.2f} | {:.2f} |\n", ways[i].name, spreads[i].at(0.5), spreads[i].at(0.99));
  }
}

// Instructions of one call, exactly: the difference between two runs under callgrind.
double instructions(const Way& way, const std::string& what, long fewer, long more, double calls) {
  const auto collected = [&](long times) {
    const std::string text = output_of(
        fmt::format("{} valgrind --tool=callgrind --callgrind-out-file=/dev/null {} {} {} 2>&1",
                    way.settings, ASSAY_LOAD, what, times));
    const std::size_t at = text.find("Collected : ");
    return at == std::string::npos ? 0.0 : std::strtod(text.c_str() + at + 12, nullptr);
  };
  return (collected(more) - collected(fewer)) / static_cast<double>(more - fewer) / calls;
}

bool make_limited(int file) {
  if (!assay::wire::make_gpu_region(file)) return false;
  void* memory =
      ::mmap(nullptr, sizeof(assay::wire::GpuRegion), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return false;
  assay::wire::GpuLimits& limits = static_cast<assay::wire::GpuRegion*>(memory)->header.limits;
  limits.share = 500;
  limits.borrow = 1;
  ::munmap(memory, sizeof(assay::wire::GpuRegion));
  return true;
}

}  // namespace

int main(int count, char** arguments) {
  int rounds = 21;
  std::vector<std::string> others;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string option = arguments[i];
    if (option == "--rounds") rounds = std::atoi(arguments[i + 1]);
    if (option == "--preload") others.emplace_back(arguments[i + 1]);
  }
  char path[] = "/dev/shm/assay-gpu-bench-XXXXXX";
  const int file = ::mkstemp(path);
  if (file < 0 || !assay::wire::make_gpu_region(file)) return 3;
  // The run with a share may borrow, and is alone: it never waits for a turn.
  char limited_path[] = "/dev/shm/assay-gpu-bench-XXXXXX";
  const int limited = ::mkstemp(limited_path);
  if (limited < 0 || !make_limited(limited)) return 3;
  const std::string turns = std::string(limited_path) + "-turns";
  std::vector<Way> ways = {
      {"bare", ""},
      {"a jump and nothing else", "LD_PRELOAD=" ASSAY_NOOP},
      {"counting", fmt::format("ASSAY_GPU_REGION={} LD_PRELOAD={}", path, ASSAY_GPU_LIBRARY)},
      {"counting, with a share", fmt::format("ASSAY_GPU_REGION={} ASSAY_GPU_TURNS={} LD_PRELOAD={}",
                                             limited_path, turns, ASSAY_GPU_LIBRARY)},
  };
  for (const std::string& library : others) {
    ways.push_back({std::filesystem::path(library).filename(), "LD_PRELOAD=" + library});
  }
  measure(ways, "launch 1 20000000", rounds, {"launch, 1 thread"});
  measure(ways, "launch 2 20000000", rounds, {"launch, 2 threads"});
  measure(ways, "free 50000 200", rounds,
          {"free, 50,000 blocks live", "allocation, 50,000 blocks live"});
  measure(ways, "free 1000 200", rounds,
          {"free, 1,000 blocks live", "allocation, 1,000 blocks live"});
  measure_starts(ways, 1, 10 * rounds, file);
  measure_starts(ways, 300, 5, file);
  if (!output_of("command -v valgrind").empty()) {
    fmt::print("\n| instructions (callgrind) | a launch | added |\n|---|---|---|\n");
    double bare = 0;
    for (const Way& way : ways) {
      const double each = instructions(way, "launch 1", 100000, 300000, 1);
      if (&way == &ways.front()) bare = each;
      fmt::print("| {} | {:.2f} | {:+.2f} |\n", way.name, each, each - bare);
    }
  }
  for (const int opened : {file, limited}) ::close(opened);
  for (const std::string& made : {std::string(path), std::string(limited_path), turns}) {
    ::unlink(made.c_str());
  }
  return 0;
}
