// Pipelines played pass by pass: every stage does its passes in its schedule's order, each as soon
// as the stage is free and what the pass needs is there. The oracle of src/plan/model/pipeline.cc.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

namespace assay::plan::testing {

enum class PlayedSchedule { kGpipe, kOneForwardOneBackward, kInterleaved, kZeroBubbleH1 };

struct PlayedPipeline {
  PlayedSchedule schedule = PlayedSchedule::kGpipe;
  int stages = 1;
  int chunks = 1;
  int micros = 1;
  // Seconds of one micro-batch in one chunk, and in the last one's head on top.
  double forward = 0;
  double backward = 0;
  double weights = 0;  // gradients of weights, which zero bubble makes by themselves
  double head_forward = 0;
  double head_backward = 0;
};

// Of a micro-batch through a chunk of the whole model: chunk c of stage s is c * stages + s.
struct PlayedPass {
  bool forward = true;
  int micro = 0;
  int place = 0;
  bool weights = false;
  auto operator<=>(const PlayedPass&) const = default;
};

// Gradients of weights as many micro-batches after those of activations as there are stages before.
inline std::vector<PlayedPass> with_weights(const std::vector<PlayedPass>& passes, int stage) {
  std::vector<PlayedPass> order;
  std::vector<PlayedPass> waiting;
  for (const PlayedPass& pass : passes) {
    order.push_back(pass);
    if (pass.forward) continue;
    waiting.push_back({false, pass.micro, pass.place, true});
    if (static_cast<int>(waiting.size()) <= stage) continue;
    order.push_back(waiting.front());
    waiting.erase(waiting.begin());
  }
  order.insert(order.end(), waiting.begin(), waiting.end());
  return order;
}

// What a stage does, in order. Interleaved as in Megatron-LM: micro-batches in groups of as many as
// there are stages, each group through one chunk after the other.
inline std::vector<PlayedPass> passes_of_stage(const PlayedPipeline& p, int stage) {
  std::vector<PlayedPass> forward;
  std::vector<PlayedPass> backward;
  const bool grouped = p.schedule == PlayedSchedule::kInterleaved;
  const int group = grouped ? p.stages : p.micros;
  for (int first = 0; first < p.micros; first += group) {
    const int end = std::min(first + group, p.micros);
    for (int c = 0; c < p.chunks; ++c) {
      for (int micro = first; micro < end; ++micro) {
        forward.push_back({true, micro, c * p.stages + stage});
        backward.push_back({false, micro, (p.chunks - 1 - c) * p.stages + stage});
      }
    }
  }
  const std::size_t all = forward.size();
  const int later = p.stages - stage - 1;
  std::size_t ahead = all;  // forward passes before the first backward one
  if (p.schedule == PlayedSchedule::kOneForwardOneBackward ||
      p.schedule == PlayedSchedule::kZeroBubbleH1) {
    ahead = static_cast<std::size_t>(later);
  } else if (grouped && p.micros > p.stages) {
    ahead = static_cast<std::size_t>(2 * later + (p.chunks - 1) * p.stages);
  }
  ahead = std::min(ahead, all);
  std::vector<PlayedPass> order(forward.begin(), forward.begin() + static_cast<long>(ahead));
  for (std::size_t k = ahead; k < all; ++k) {
    order.push_back(forward[k]);
    order.push_back(backward[k - ahead]);
  }
  order.insert(order.end(), backward.end() - static_cast<long>(ahead), backward.end());
  if (p.schedule == PlayedSchedule::kZeroBubbleH1) return with_weights(order, stage);
  return order;
}

// Seconds; nothing if the stages wait for each other for ever.
inline std::optional<double> play_pipeline(const PlayedPipeline& p) {
  const int last = p.stages * p.chunks - 1;
  std::map<PlayedPass, double> done;
  const auto ready_at = [&](const PlayedPass& pass) -> std::optional<double> {
    if (pass.forward && pass.place == 0) return 0.0;
    PlayedPass needed{pass.forward, pass.micro, pass.place + (pass.forward ? -1 : 1)};
    if (pass.weights) needed.place = pass.place;
    if (!pass.forward && !pass.weights && pass.place == last) needed = {true, pass.micro, last};
    const auto at = done.find(needed);
    return at == done.end() ? std::nullopt : std::optional(at->second);
  };
  std::vector<std::vector<PlayedPass>> orders;
  for (int s = 0; s < p.stages; ++s) orders.push_back(passes_of_stage(p, s));
  std::vector<std::size_t> next(orders.size(), 0);
  std::vector<double> free(orders.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < orders.size(); ++s) {
      for (; next[s] < orders[s].size(); ++next[s]) {
        const PlayedPass& pass = orders[s][next[s]];
        const std::optional<double> ready = ready_at(pass);
        if (!ready) break;
        double seconds = pass.forward ? p.forward : p.backward;
        if (pass.place == last) seconds += pass.forward ? p.head_forward : p.head_backward;
        if (pass.weights) seconds = p.weights;
        free[s] = std::max(free[s], *ready) + seconds;
        done[pass] = free[s];
        moved = true;
      }
    }
  }
  for (std::size_t s = 0; s < orders.size(); ++s)
    if (next[s] < orders[s].size()) return std::nullopt;
  return *std::max_element(free.begin(), free.end());
}

}  // namespace assay::plan::testing
