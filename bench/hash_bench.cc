// Whole processes that hash one file, ours and b3sum, in turns, so that what disturbs one disturbs
// both. Prints the median of each and the ratio. Run by bench/hash.
//
//   hash_bench FILE ROUNDS
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/statistics.h"
#include "process_time.h"

namespace {

using assay::base::median;
using assay::bench::process_seconds;

// Ours over b3sum's: the ratio is the median of the rounds' ratios, each of two neighbours in time.
void compare(const std::string& label, double bytes, int rounds,
             const std::vector<std::string>& ours, const std::vector<std::string>& theirs) {
  std::vector<double> our_s;
  std::vector<double> their_s;
  std::vector<double> ratios;
  for (int round = -1; round < rounds; ++round) {
    const bool first = round % 2 == 0;  // the order alternates
    double mine = first ? process_seconds(ours) : 0;
    const double other = process_seconds(theirs);
    if (!first) mine = process_seconds(ours);
    if (round < 0) continue;
    our_s.push_back(mine);
    their_s.push_back(other);
    ratios.push_back(other / mine);
  }
  const auto [low, high] = std::minmax_element(ratios.begin(), ratios.end());
  const auto best = [](const std::vector<double>& s) {
    return *std::min_element(s.begin(), s.end());
  };
  fmt::print("{:<22}{:>8.2f}{:>8.2f}{:>10.2f}{:>8.2f}{:>9.2f}   {:.2f} to {:.2f}\n", label,
             bytes / median(our_s) / 1e9, bytes / best(our_s) / 1e9, bytes / median(their_s) / 1e9,
             bytes / best(their_s) / 1e9, median(ratios), *low, *high);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 64;
  const std::string file = argv[1];
  const auto bytes = static_cast<double>(std::filesystem::file_size(file));
  const int rounds = std::max(7, std::atoi(argv[2]));
  const std::string tool = ASSAY_HASH_TOOL;
  fmt::print("{:<22}{:>16}{:>18}   {}\n", "GB/s", "ours", "b3sum", "ours/b3sum");
  fmt::print("{:<22}{:>8}{:>8}{:>10}{:>8}{:>9}   {}\n", "", "median", "best", "median", "best",
             "median", "range");
  compare("one thread", bytes, rounds, {tool, file, "1"}, {"b3sum", "--num-threads", "1", file});
  compare("all processors", bytes, rounds, {tool, file, "0"}, {"b3sum", file});
  compare("one thread, copied", bytes, rounds, {tool, file, "1", "copied"},
          {"b3sum", "--num-threads", "1", file});
}
