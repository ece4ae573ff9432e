#include "train/cuda/product_race.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "train/cuda/kernels.h"

namespace assay::train::cuda {
namespace {

constexpr int kRepeats = 5;
constexpr float kHopeless = 1.15F;  // times the best so far: not timed any further
constexpr float kNever = std::numeric_limits<float>::infinity();
// Below this nothing gets hot, and a guess is good enough.
constexpr double kLarge = 2e10;
constexpr std::size_t kFamilies = 3;  // guesses whose neighbours run too
constexpr std::size_t kFinalists = 8;
constexpr int kFinalTurns = 3;
constexpr float kFinal_ms = 100;  // of each finalist in each turn

template <class T>
void set(cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t what, T value) {
  cublasLtMatmulAlgoConfigSetAttribute(&algorithm, what, &value, sizeof value);
}

std::int32_t most_custom_options(const cublasLtMatmulAlgo_t& algorithm) {
  std::int32_t most = 0;
  std::size_t written = 0;
  cublasLtMatmulAlgoCapGetAttribute(&algorithm, CUBLASLT_ALGO_CAP_CUSTOM_OPTION_MAX, &most,
                                    sizeof most, &written);
  return std::clamp(most, 0, 7);
}

}  // namespace

ProductRace::ProductRace(Device& device, Matrix result, Launch launch, Check check)
    : device_(device), result_(result), launch_(std::move(launch)), check_(std::move(check)) {
  device_.check(cudaEventCreate(&begin_), "event");
  device_.check(cudaEventCreate(&end_), "event");
}

ProductRace::~ProductRace() {
  if (begin_ != nullptr) cudaEventDestroy(begin_);
  if (end_ != nullptr) cudaEventDestroy(end_);
}

// Milliseconds of one product, or infinity.
float ProductRace::time(const Algorithm& algorithm, int count) {
  cudaEventRecord(begin_, device_.stream);
  for (int i = 0; i < count; ++i) {
    if (!launch_(algorithm, true)) return kNever;
  }
  cudaEventRecord(end_, device_.stream);
  float ms = 0;
  if (cudaEventSynchronize(end_) != cudaSuccess) return kNever;
  cudaEventElapsedTime(&ms, begin_, end_);
  return ms / static_cast<float>(count);
}

void ProductRace::add(const Algorithm& algorithm) {
  float best = kNever;
  for (const Runner& runner : field_) best = std::min(best, runner.ms);
  if (time(algorithm, 1) == kNever) return;  // loads the kernel
  float ms = time(algorithm, 1);
  if (ms <= kHopeless * best) ms = time(algorithm, kRepeats);
  field_.push_back({ms, algorithm});
}

void ProductRace::add_neighbours(const Algorithm& of) {
  constexpr std::array kClusters = {CUBLASLT_CLUSTER_SHAPE_1x1x1, CUBLASLT_CLUSTER_SHAPE_2x1x1,
                                    CUBLASLT_CLUSTER_SHAPE_1x2x1};
  for (std::int32_t custom = 0; custom <= most_custom_options(of); ++custom) {
    for (const cublasLtClusterShape_t cluster : kClusters) {
      for (const std::uint32_t swizzle : {0U, 1U}) {
        Algorithm algorithm = of;
        set(algorithm, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, static_cast<std::uint32_t>(custom));
        set(algorithm, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, static_cast<std::uint16_t>(cluster));
        set(algorithm, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, swizzle);
        if (std::memcmp(&algorithm, &of, sizeof of) != 0 && check_(algorithm)) add(algorithm);
      }
    }
  }
}

// But for rounding: were one element in a thousand another, the sums would be 4 % of their spread
// apart.
bool ProductRace::gives_the_same(const Algorithm& algorithm, const Algorithm& as) {
  constexpr double kApart = 0.02;
  if (!launch_(as, false)) return false;
  const Fingerprint expected = fingerprint(device_, result_);
  if (!launch_(algorithm, false)) return false;
  const Fingerprint got = fingerprint(device_, result_);
  return std::abs(got.sum - expected.sum) <= kApart * std::sqrt(expected.squares) &&
         std::abs(got.squares - expected.squares) <= kApart * expected.squares;
}

ProductRace::Algorithm ProductRace::final_round() {
  std::vector<Runner> finalists(
      field_.begin(),
      field_.begin() + static_cast<std::ptrdiff_t>(std::min(kFinalists, field_.size())));
  std::vector<int> repeats;
  for (Runner& runner : finalists) {
    // Small products never reach the limit: a burst says it all.
    repeats.push_back(std::clamp(static_cast<int>(kFinal_ms / runner.ms), kRepeats, 400));
    runner.ms = 0;
  }
  for (int turn = 0; turn <= kFinalTurns; ++turn) {
    for (std::size_t i = 0; i < finalists.size(); ++i) {
      const float ms = time(finalists[i].algorithm, repeats[i]);
      if (turn > 0) finalists[i].ms += ms;  // the first turn makes the card hot
    }
  }
  return std::ranges::min_element(finalists, {}, &Runner::ms)->algorithm;
}

ProductRace::Algorithm ProductRace::winner(std::span<const cublasLtMatmulHeuristicResult_t> guesses,
                                           double flops) {
  for (const cublasLtMatmulHeuristicResult_t& guess : guesses) add(guess.algo);
  if (field_.empty()) return guesses.front().algo;
  const auto sort = [&] { std::ranges::stable_sort(field_, {}, &Runner::ms); };
  sort();
  if (flops >= kLarge && result_.stride == result_.cols) {
    const std::vector<Runner> known = field_;
    for (std::size_t i = 0; i < std::min(kFamilies, known.size()); ++i) {
      add_neighbours(known[i].algorithm);
    }
    sort();
    field_.resize(std::min(field_.size(), kFinalists));
    const auto offered = [&](const Runner& runner) {
      return std::ranges::any_of(known, [&](const Runner& guess) {
        return std::memcmp(&guess.algorithm, &runner.algorithm, sizeof runner.algorithm) == 0;
      });
    };
    std::erase_if(field_, [&](const Runner& runner) {
      return !offered(runner) && !gives_the_same(runner.algorithm, known.front().algorithm);
    });
    field_.push_back(known.front());
  }
  return final_round();
}

}  // namespace assay::train::cuda
