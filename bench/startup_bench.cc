// How long the program takes to start and end, beside the shell's /bin/true: the floor that the
// kernel sets. The two alternate, so that what disturbs one disturbs both.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/statistics.h"
#include "process_time.h"

namespace {

double quantile_ms(const std::vector<double>& times_s, double share) {
  return assay::base::quantile(times_s, share) * 1e3;
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
  std::vector<std::vector<double>> times(commands.size());
  for (int round = -20; round < kRounds; ++round) {
    for (std::size_t i = 0; i < commands.size(); ++i) {
      const double elapsed_s = assay::bench::process_seconds(commands[i]);
      if (round >= 0) times[i].push_back(elapsed_s);
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
