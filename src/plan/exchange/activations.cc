#include "plan/exchange/activations.h"

#include <cmath>

#include "step/pipeline.h"
#include "step/program.h"
#include "step/recompute.h"
#include "step/shapes.h"

namespace assay::plan {
namespace {

using step::CollectiveKind;

// How often a micro-batch does something, counted over a stage's layers.
struct CountedLayers {
  std::int64_t layers = 0;
  std::int64_t mixtures = 0;
  std::int64_t again = 0;  // whose forward pass is repeated, as far as the policy says
  std::int64_t mixtures_again = 0;
};

CountedLayers layers_of(const spec::JobSpec& job, std::int64_t stage, spec::Recompute recompute) {
  const spec::LayoutSpec& l = job.layout;
  const bool recomputes = recompute != spec::Recompute::kNone;
  CountedLayers found;
  for (std::int64_t chunk = stage; chunk < l.pp * l.pp_chunks; chunk += l.pp) {
    const step::Layers range = step::layers_of_chunk(job.model.layers, chunk, l.pp * l.pp_chunks);
    for (std::int32_t layer = range.first; layer < range.end; ++layer) {
      const std::int64_t mixture = job.model.is_moe_layer(layer) ? 1 : 0;
      const bool again = recomputes && step::recomputes_layer(layer, job.model.layers);
      ++found.layers;
      found.mixtures += mixture;
      found.again += again ? 1 : 0;
      found.mixtures_again += again ? mixture : 0;
    }
  }
  return found;
}

class CallList {
 public:
  CallList(step::Dtype type, std::int64_t micros) : type_(type), micros_(micros) {}

  // So often in each micro-batch.
  void add(step::Axis axis, CollectiveKind kind, double elements, std::int64_t times) {
    if (times == 0) return;
    const std::int64_t bytes = std::llround(elements) * step::bytes_of(type_);
    const std::int64_t calls = times * micros_;
    list.push_back({axis,
                    {.kind = kind,
                     .type = type_,
                     .calls = calls,
                     .bytes = calls * bytes,
                     .least_bytes = bytes,
                     .most_bytes = bytes}});
  }

  std::vector<ActivationCalls> list;

 private:
  step::Dtype type_;
  std::int64_t micros_;
};

}  // namespace

std::vector<ActivationCalls> activation_calls(const spec::JobSpec& job, std::int64_t stage,
                                              spec::Recompute recompute) {
  if (recompute == spec::Recompute::kAuto) recompute = spec::Recompute::kNone;
  const spec::LayoutSpec& l = job.layout;
  const spec::ModelSpec& m = job.model;
  const step::KeptParts kept = step::kept_by(recompute);
  const CountedLayers n = layers_of(job, stage, recompute);
  const bool first = stage == 0;
  const bool last = stage == l.pp - 1;
  const double tokens =
      static_cast<double>(job.batch.sequence * job.batch.micro_batch) / static_cast<double>(l.cp);
  const auto dim = static_cast<double>(m.dim);
  CallList calls(step::numerics_of(job.train.precision).activations, job.batch.accumulate);

  // Keys and values of whole sequences, before attention and again before its gradients, which go
  // back to where the keys came from.
  const std::int64_t attention_again = kept.attention ? 0 : n.again;
  const double keys_values =
      2 * tokens * static_cast<double>(step::block_shape(m, l.tp).kv) * static_cast<double>(l.cp);
  if (l.cp > 1) {
    calls.add(step::Axis::kContext, CollectiveKind::kAllGather, keys_values,
              2 * n.layers + attention_again);
  }
  // The halves of a block end in a sum, and begin with one on the way back; a block that is
  // repeated does not need its last one. So do the table and the head, which are spread over the
  // vocabulary. With sequence parallelism a sum is scattered, and gathered where it is read.
  if (l.tp > 1) {
    const std::int64_t sums = 4 * n.layers + attention_again + (first ? 1 : 0) + (last ? 1 : 0);
    if (l.sequence_parallel) {
      calls.add(step::Axis::kTensor, CollectiveKind::kReduceScatter, tokens * dim, sums);
      calls.add(step::Axis::kTensor, CollectiveKind::kAllGather, tokens * dim, sums);
    } else {
      calls.add(step::Axis::kTensor, CollectiveKind::kAllReduce, tokens * dim, sums);
    }
  }
  // Tokens go to their experts and back, in both directions; with a capacity as many as fit.
  if (l.ep > 1) {
    const double even = tokens * static_cast<double>(m.experts_per_token);
    const double routed = m.capacity > 0 ? m.capacity * even : even;
    calls.add(step::Axis::kExpert, CollectiveKind::kAllToAll, routed * dim,
              4 * n.mixtures + (kept.gate_up ? 0 : n.mixtures_again));
  }
  if (l.cp > 1) {
    calls.add(step::Axis::kContext, CollectiveKind::kReduceScatter, keys_values, n.layers);
  }
  // A stage hands the stream on and its gradient back, for each of its chunks.
  const double stream = (l.sequence_parallel ? tokens / static_cast<double>(l.tp) : tokens) * dim;
  calls.add(step::Axis::kPipeline, CollectiveKind::kSendReceive, stream,
            ((last ? 0 : 1) + (first ? 0 : 1)) * l.pp_chunks);
  return std::move(calls.list);
}

}  // namespace assay::plan
