#include "plan/exchange/activations.h"

#include <algorithm>
#include <cmath>

#include "step/outline.h"
#include "step/pipeline.h"

namespace assay::plan {

std::vector<ActivationCalls> activation_calls(const spec::JobSpec& job, std::int64_t stage,
                                              spec::Recompute recompute) {
  const spec::LayoutSpec& l = job.layout;
  const step::OutlineChoices choices{
      .numerics = step::numerics_of(job.train.precision),
      .recompute = recompute == spec::Recompute::kAuto ? spec::Recompute::kNone : recompute,
      .optimizer = job.train.optimizer,
      .sequence = job.batch.sequence,
      .micro_batch = job.batch.micro_batch,
      .accumulate = job.batch.accumulate,
      .cut = {.tensor = l.tp,
              .sequence_parallel = l.sequence_parallel,
              .context = l.cp,
              .expert = l.ep,
              .layers = step::layers_of_stage(job.model.layers, stage, l.pp, l.pp_chunks),
              .first = stage == 0,
              .last = stage == l.pp - 1}};
  std::vector<ActivationCalls> rows;
  for (const step::OutlineCollective& one : step::outline(job.model, choices).collectives) {
    const step::Collective& c = one.collective;
    const auto same = [&](const ActivationCalls& row) {
      return row.axis == one.axis && row.calls.kind == c.kind && row.calls.type == c.type;
    };
    auto row = std::find_if(rows.begin(), rows.end(), same);
    if (row == rows.end()) {
      rows.push_back({one.axis, {.kind = c.kind, .type = c.type, .least_bytes = c.bytes()}});
      row = rows.end() - 1;
    }
    // A stage of several chunks sends as often as it has chunks.
    const bool sends = one.axis == step::Axis::kPipeline;
    const std::int64_t times = std::llround(one.count) * (sends ? l.pp_chunks : 1);
    row->calls.calls += times;
    row->calls.bytes += times * c.bytes();
    row->calls.least_bytes = std::min(row->calls.least_bytes, c.bytes());
    row->calls.most_bytes = std::max(row->calls.most_bytes, c.bytes());
  }
  return rows;
}

}  // namespace assay::plan
