// How often the 95 % interval contains the true effect of a simulated experiment, with the real
// schedule, estimate and stopping rule: 2,000 experiments for each kind of noise. The standard
// deviation of a binomial with n = 2,000 at 95 % is 0.5 %.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "compare/effect.h"
#include "compare/schedule.h"
#include "compare/stopping.h"

extern "C" __attribute__((weak)) void __asan_init();

namespace assay::compare {
namespace {

constexpr int kExperiments = 2000;
constexpr double kTrue = 0.01;  // ln(B/A)
constexpr std::size_t kArms = 3;

// What the machine adds to the logarithm of a run's time, and to the effect of a block.
struct Noise {
  std::function<double(std::mt19937_64&, std::int64_t run, std::size_t place)> of_run;
  std::function<double(std::mt19937_64&)> of_effect = [](std::mt19937_64&) { return 0.0; };
};

double gaussian(std::mt19937_64& random, double deviation) {
  return std::normal_distribution<double>(0, deviation)(random);
}

class SimulatedExperiment {
 public:
  SimulatedExperiment(std::uint64_t seed, Noise noise)
      : seed_(seed), random_(seed), noise_(std::move(noise)) {}

  const std::vector<double>& differences() const { return differences_; }
  void run_block() {
    const auto block = static_cast<std::int64_t>(differences_.size());
    const double effect = kTrue + noise_.of_effect(random_);
    std::array<double, kArms> logs{};
    const auto order = order_of_block(seed_, block, kArms);
    for (std::size_t place = 0; place < kArms; ++place) {
      const std::size_t arm = order[place];
      logs[arm] = (arm == 1 ? effect : 0) + noise_.of_run(random_, run_++, place);
    }
    differences_.push_back(logs[1] - logs[0]);
  }

 private:
  std::uint64_t seed_;
  std::mt19937_64 random_;
  Noise noise_;
  std::int64_t run_ = 0;
  std::vector<double> differences_;
};

double coverage(int pairs, const std::function<Noise()>& noise) {
  int covered = 0;
  for (int i = 0; i < kExperiments; ++i) {
    SimulatedExperiment experiment(static_cast<std::uint64_t>(i) + 1, noise());
    for (int pair = 0; pair < pairs; ++pair) experiment.run_block();
    covered += estimate_of(experiment.differences()).interval.contains(kTrue) ? 1 : 0;
  }
  return covered / static_cast<double>(kExperiments);
}

Noise gaussian_noise() {
  return {[](auto& random, std::int64_t, std::size_t) { return gaussian(random, 0.01); }};
}

// One run of ten is hit, by 10 % on average and at times by much more.
Noise spiked_noise() {
  return {[](auto& random, std::int64_t, std::size_t) {
    const bool hit = std::uniform_real_distribution<double>()(random) < 0.1;
    const double spike = std::exponential_distribution<double>(10)(random);
    return gaussian(random, 0.005) + (hit ? spike : 0);
  }};
}

// The machine becomes 4 % slower, and the first run in a block takes 1 % longer.
Noise drifting_noise() {
  return {[](auto& random, std::int64_t run, std::size_t place) {
    return 0.04 * static_cast<double>(run) / (3 * 40) + (place == 0 ? 0.01 : 0) +
           gaussian(random, 0.003);
  }};
}

double next_of_chain(std::mt19937_64& random, double& state, double r, double deviation) {
  state = r * state + gaussian(random, deviation * std::sqrt(1 - r * r));
  return state;
}

// A neighbour comes and goes: consecutive runs resemble each other.
Noise autocorrelated_noise() {
  return {[state = 0.0](auto& random, std::int64_t, std::size_t) mutable {
    return next_of_chain(random, state, 0.9, 0.03) + gaussian(random, 0.003);
  }};
}

// The effect itself drifts, so that differences are autocorrelated whatever the order.
Noise wandering_effect(double r) {
  Noise noise = gaussian_noise();
  noise.of_run = [](auto& random, std::int64_t, std::size_t) { return gaussian(random, 0.001); };
  noise.of_effect = [state = 0.0, r](auto& random) mutable {
    return next_of_chain(random, state, r, 0.01);
  };
  return noise;
}

void expect_coverage(double alpha_share) {
  ::testing::Test::RecordProperty("coverage", std::to_string(alpha_share));
  EXPECT_GE(alpha_share, 0.93);
  EXPECT_LE(alpha_share, 0.97);
}

class Coverage : public ::testing::Test {
 protected:
  void SetUp() override {
    if (__asan_init != nullptr) GTEST_SKIP() << "a minute under the sanitizers";
  }
};

TEST_F(Coverage, GaussianNoise) {
  expect_coverage(coverage(40, gaussian_noise));
}
TEST_F(Coverage, SpikedNoise) {
  expect_coverage(coverage(40, spiked_noise));
}
TEST_F(Coverage, DriftingNoise) {
  expect_coverage(coverage(40, drifting_noise));
}
TEST_F(Coverage, AutocorrelatedNoise) {
  expect_coverage(coverage(40, autocorrelated_noise));
}
TEST_F(Coverage, FewPairs) {
  expect_coverage(coverage(12, gaussian_noise));
}

TEST_F(Coverage, AnEffectThatWanders) {
  expect_coverage(coverage(80, [] { return wandering_effect(0.4); }));
}

// Shows that coverage would be too low without the widening.
TEST_F(Coverage, AnEffectThatWandersNeedsTheWidening) {
  int covered = 0;
  for (int i = 0; i < kExperiments; ++i) {
    SimulatedExperiment experiment(static_cast<std::uint64_t>(i) + 1, wandering_effect(0.4));
    for (int pair = 0; pair < 80; ++pair) experiment.run_block();
    Estimate e = estimate_of(experiment.differences());
    const double off = (kTrue - e.centre) * e.widening;
    covered += e.interval.contains(e.centre + off) ? 1 : 0;
  }
  EXPECT_LT(covered, 0.90 * kExperiments);
}

TEST_F(Coverage, StoppingOnPrecisionKeepsIt) {
  const StopRule rule{.half_width_pct = 0.4, .min_pairs = 20};
  int covered = 0;
  double pairs = 0;
  for (int i = 0; i < kExperiments; ++i) {
    SimulatedExperiment experiment(static_cast<std::uint64_t>(i) + 1, gaussian_noise());
    Estimate e;
    do {
      for (int k = 0; k < 4; ++k) experiment.run_block();
      e = estimate_of(experiment.differences());
    } while (stop_after(rule, e, base::Seconds(0)) == StopReason::kNo);
    covered += e.interval.contains(kTrue) ? 1 : 0;
    pairs += static_cast<double>(e.pairs);
  }
  expect_coverage(covered / static_cast<double>(kExperiments));
  EXPECT_NEAR(pairs / kExperiments, 50, 8);
}

}  // namespace
}  // namespace assay::compare
