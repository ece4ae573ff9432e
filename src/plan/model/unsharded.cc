#include "plan/model/unsharded.h"

#include <algorithm>

namespace assay::plan {
namespace {

// A layer is gathered while another is at work, and the gradients of a third are reduced.
constexpr double kUnitsUnsharded = 3;
// Of tensors that are gathered one by one, the largest is a third of a layer.
constexpr double kTensorsUnsharded = 3;
constexpr double kEndsUnsharded = 2;  // weights and gradients
constexpr double kUnshardedBytes = 2;

}  // namespace

double unsharded_units(const Work& work, const RankShare& rank) {
  const Shape& shape = work.shape;
  const Degrees& d = work.degrees;
  const double experts = rank.expert_parameters * shape.layers;
  const double body = (shape.body_parameters - experts) / d.tp + experts / d.ep / rank.expert_cut;
  const double ends = std::max(0.0, shape.parameters - shape.body_parameters) / d.tp;
  // The first stage of a pipeline has the embedding, the last the head.
  const double end = ends / (d.pp > 1 && !shape.tied ? 2 : 1);
  const double units = work.software.zero3_by_tensor ? kTensorsUnsharded : d.units;
  return kUnshardedBytes * (kUnitsUnsharded * body / shape.layers / units + kEndsUnsharded * end);
}

}  // namespace assay::plan
