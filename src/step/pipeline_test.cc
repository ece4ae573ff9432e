// The order of a stage's passes, and the total time when all stages follow theirs.
#include "step/pipeline.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

namespace assay::step {
namespace {

using Direction = Pass::Direction;
using spec::PipelineSchedule;

Layout stage_of(PipelineSchedule schedule, std::int64_t stage, std::int64_t stages,
                std::int64_t chunks = 1) {
  return {.pipeline = {stage, stages}, .schedule = schedule, .chunks = chunks};
}

struct Costs {
  double forward = 1;
  double backward = 1;  // gradients of activations alone
  double weights = 1;
};

// Simulates all stages: each does its passes in order, as soon as their inputs are there. Nothing
// if they deadlock.
std::optional<double> played(PipelineSchedule schedule, std::int64_t stages, std::int64_t micros,
                             const Costs& costs, std::int64_t chunks = 1) {
  using PassKey = std::tuple<Direction, std::int64_t, std::int32_t>;  // the chunk among all
  std::map<PassKey, double> done;
  const std::int64_t last = stages * chunks - 1;
  const auto needed = [&](const Pass& pass, std::int64_t place) -> std::optional<PassKey> {
    if (pass.direction == Direction::kWeights)
      return PassKey{Direction::kBackward, place, pass.micro};
    const bool forward = pass.direction == Direction::kForward;
    if (forward && place == 0) return std::nullopt;
    if (!forward && place == last) return PassKey{Direction::kForward, place, pass.micro};
    return PassKey{pass.direction, place + (forward ? -1 : 1), pass.micro};
  };
  std::vector<std::vector<Pass>> orders;
  for (std::int64_t s = 0; s < stages; ++s) {
    orders.push_back(passes_of(stage_of(schedule, s, stages, chunks), micros, true));
  }
  const bool apart = defers_weight_gradients(stage_of(schedule, 0, stages));
  std::vector<std::size_t> next(orders.size());
  std::vector<double> free(orders.size());
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < orders.size(); ++s) {
      for (; next[s] < orders[s].size(); ++next[s]) {
        const Pass& pass = orders[s][next[s]];
        const std::int64_t place = pass.chunk * stages + static_cast<std::int64_t>(s);
        const auto needs = needed(pass, place);
        if (needs && !done.contains(*needs)) break;
        double cost = costs.forward;
        if (pass.direction == Direction::kBackward) {
          cost = costs.backward + (apart ? 0 : costs.weights);
        } else if (pass.direction == Direction::kWeights) {
          cost = costs.weights;
        }
        free[s] = std::max(free[s], needs ? done[*needs] : 0) + cost;
        done[{pass.direction, place, pass.micro}] = free[s];
        moved = true;
      }
    }
  }
  for (std::size_t s = 0; s < orders.size(); ++s) {
    if (next[s] < orders[s].size()) return std::nullopt;
  }
  return *std::max_element(free.begin(), free.end());
}

// The maximum number of micro-batches between two passes.
std::int64_t most_between(const std::vector<Pass>& passes, Direction from, Direction to) {
  std::int64_t now = 0;
  std::int64_t most = 0;
  for (const Pass& pass : passes) {
    if (pass.direction == from) most = std::max(most, ++now);
    if (pass.direction == to) --now;
  }
  return most;
}

RC_GTEST_PROP(Pipeline, EveryPassIsThereOnceAndAfterWhatItNeeds, ()) {
  const auto schedule = *rc::gen::element(PipelineSchedule::kGpipe, PipelineSchedule::k1f1b,
                                          PipelineSchedule::kInterleaved, PipelineSchedule::kZbH1);
  const std::int64_t stages = *rc::gen::inRange(2, 9);
  const bool interleaved = schedule == PipelineSchedule::kInterleaved;
  const std::int64_t chunks = interleaved ? *rc::gen::inRange(2, 4) : 1;
  std::int64_t micros = *rc::gen::inRange(1, 24);
  if (interleaved) micros *= stages;
  const std::int64_t stage = *rc::gen::inRange<std::int64_t>(0, stages);
  const Layout layout = stage_of(schedule, stage, stages, chunks);
  const std::vector<Pass> passes = passes_of(layout, micros, true);
  const bool apart = defers_weight_gradients(layout);
  RC_ASSERT(static_cast<std::int64_t>(passes.size()) == (apart ? 3 : 2) * micros * chunks);
  std::map<std::pair<std::int32_t, std::int32_t>, int> seen;  // of chunk and micro: passes done
  std::map<std::pair<std::int32_t, Direction>, std::int32_t> latest;    // of chunk: micro
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> taken;  // of chunk and slot
  for (const Pass& pass : passes) {
    const int before = seen[{pass.chunk, pass.micro}]++;
    RC_ASSERT(before == static_cast<int>(pass.direction));
    const auto [done, is_first] = latest.try_emplace({pass.chunk, pass.direction}, -1);
    RC_ASSERT(pass.micro == done->second + 1);  // sums are of micro-batches in order
    done->second = pass.micro;
    const auto [slot, is_free] = taken.try_emplace({pass.chunk, pass.slot}, pass.micro);
    RC_ASSERT(slot->second == pass.micro);
    RC_ASSERT(is_free == (pass.direction == Direction::kForward));
    if (pass.direction == (apart ? Direction::kWeights : Direction::kBackward)) taken.erase(slot);
  }
  RC_ASSERT(taken.empty());
  RC_ASSERT(played(schedule, stages, micros, {}, chunks).has_value());
}

RC_GTEST_PROP(Pipeline, ZeroBubbleHasNoMoreInFlightThan1f1b, ()) {
  const std::int64_t stages = *rc::gen::inRange(2, 9);
  const std::int64_t micros = *rc::gen::inRange(1, 24);
  const std::int64_t stage = *rc::gen::inRange<std::int64_t>(0, stages);
  const auto passes = passes_of(stage_of(PipelineSchedule::kZbH1, stage, stages), micros, true);
  const auto usual = passes_of(stage_of(PipelineSchedule::k1f1b, stage, stages), micros, true);
  const auto first = passes_of(stage_of(PipelineSchedule::k1f1b, 0, stages), micros, true);
  RC_ASSERT(most_between(passes, Direction::kForward, Direction::kBackward) <=
            most_between(usual, Direction::kForward, Direction::kBackward));
  RC_ASSERT(most_between(passes, Direction::kForward, Direction::kWeights) <=
            most_between(first, Direction::kForward, Direction::kBackward));
}

TEST(Pipeline, ZeroBubbleWaitsAThirdAsLongAs1f1b) {
  for (std::int64_t stages = 2; stages <= 8; ++stages) {
    for (const std::int64_t micros : {stages, stages + 1, 2 * stages, 5 * stages + 3}) {
      const double busy = 3.0 * static_cast<double>(micros);
      const auto usual = played(PipelineSchedule::k1f1b, stages, micros, {});
      const auto filled = played(PipelineSchedule::kZbH1, stages, micros, {});
      ASSERT_TRUE(usual && filled);
      EXPECT_DOUBLE_EQ(*usual - busy, 3.0 * static_cast<double>(stages - 1));
      EXPECT_DOUBLE_EQ(*filled - busy, static_cast<double>(stages - 1));
    }
  }
}

RC_GTEST_PROP(Pipeline, ZeroBubbleIsNeverSlowerThan1f1b, ()) {
  const std::int64_t stages = *rc::gen::inRange(2, 9);
  const std::int64_t micros = *rc::gen::inRange(1, 24);
  const Costs costs{.forward = static_cast<double>(*rc::gen::inRange(1, 20)),
                    .backward = static_cast<double>(*rc::gen::inRange(1, 40)),
                    .weights = static_cast<double>(*rc::gen::inRange(1, 20))};
  const auto usual = played(PipelineSchedule::k1f1b, stages, micros, costs);
  const auto filled = played(PipelineSchedule::kZbH1, stages, micros, costs);
  RC_ASSERT(usual && filled);
  RC_ASSERT(*filled <= *usual);
}

}  // namespace
}  // namespace assay::step
