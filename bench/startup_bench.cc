// How long the program takes to start and end, beside the shell's /bin/true: the floor that the
// kernel sets. The two alternate, so that what disturbs one disturbs both.
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/clock.h"

namespace {

using Nanoseconds = std::int64_t;

Nanoseconds time_once(std::vector<std::string> arguments) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);

  const Nanoseconds start = assay::base::system_clock().monotonic_ns();
  pid_t child = 0;
  if (posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ) != 0) {
    fmt::print(stderr, "startup_bench: cannot start {}\n", argv[0]);
    std::exit(3);
  }
  int status = 0;
  waitpid(child, &status, 0);
  const Nanoseconds elapsed = assay::base::system_clock().monotonic_ns() - start;
  posix_spawn_file_actions_destroy(&actions);
  return elapsed;
}

double quantile_ms(std::vector<Nanoseconds>& times, double q) {
  std::sort(times.begin(), times.end());
  const auto at = static_cast<std::size_t>(q * static_cast<double>(times.size() - 1));
  return static_cast<double>(times[at]) / 1e6;
}

}  // namespace

int main() {
  constexpr int kRounds = 500;
  const std::vector<std::vector<std::string>> commands = {
      {"/bin/true"},
      {ASSAY_PROGRAM, "--version"},
      {ASSAY_PROGRAM, "presets", "show", "llama3-8b"},
      {ASSAY_PROGRAM, "presets", "list"},
  };
  std::vector<std::vector<Nanoseconds>> times(commands.size());
  for (int round = -20; round < kRounds; ++round) {
    for (std::size_t i = 0; i < commands.size(); ++i) {
      const Nanoseconds elapsed = time_once(commands[i]);
      if (round >= 0) times[i].push_back(elapsed);
    }
  }
  fmt::print("{:<32}{:>12}{:>12}{:>12}\n", "command", "median ms", "p95 ms", "p99 ms");
  for (std::size_t i = 0; i < commands.size(); ++i) {
    std::string name = commands[i][0] == "/bin/true" ? "true" : "assay";
    for (std::size_t j = 1; j < commands[i].size(); ++j) name += " " + commands[i][j];
    fmt::print("{:<32}{:>12.2f}{:>12.2f}{:>12.2f}\n", name, quantile_ms(times[i], 0.5),
               quantile_ms(times[i], 0.95), quantile_ms(times[i], 0.99));
  }
}
