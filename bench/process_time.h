// How long a whole process takes, for benchmarks that compare programs.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/clock.h"

namespace assay::bench {

// From start to end of one run, its output discarded. A run that fails ends the benchmark: its time
// would mean nothing.
inline double process_seconds(std::vector<std::string> arguments) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  const base::Stopwatch watch;
  pid_t child = 0;
  int status = -1;
  if (posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ) == 0) {
    waitpid(child, &status, 0);
  }
  const double elapsed_s = watch.elapsed().count();
  posix_spawn_file_actions_destroy(&actions);
  if (status != 0) {
    fmt::print(stderr, "benchmark: {} failed\n", argv[0]);
    std::exit(3);
  }
  return elapsed_s;
}

}  // namespace assay::bench
