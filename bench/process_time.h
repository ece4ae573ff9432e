// How long a whole process takes, for benchmarks that compare programs.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/process/process.h"

namespace assay::bench {

// From start to end of one run, its output discarded. A run that fails ends the benchmark: its time
// would mean nothing.
inline double process_seconds(std::vector<std::string> arguments) {
  const std::string name = arguments.front();
  base::PreparedProcess prepared({.arguments = std::move(arguments),
                                  .environment = base::Environment::from_current(),
                                  .redirections = {base::from_null(STDOUT_FILENO)},
                                  .own_group = false,
                                  .default_signals = std::nullopt});
  const base::Stopwatch watch;
  auto process = prepared.start();
  const int status = process ? process->wait().wait_status : -1;
  const double elapsed_s = watch.elapsed().count();
  if (status != 0) {
    fmt::print(stderr, "benchmark: {} failed\n", name);
    std::exit(3);
  }
  return elapsed_s;
}

}  // namespace assay::bench
