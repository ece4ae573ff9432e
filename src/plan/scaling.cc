#include "plan/scaling.h"

namespace assay::plan {
namespace {

constexpr std::int64_t kMostTimes = 16;

// The job on `devices` of the same machines; its inner ranks must divide them.
spec::JobSpec on_devices(const spec::JobSpec& job, std::int64_t devices) {
  spec::JobSpec scaled = job;
  const std::int64_t per_node = job.cluster.devices_per_node;
  scaled.cluster.nodes = (devices + per_node - 1) / per_node;
  scaled.cluster.max_nodes = std::max(scaled.cluster.max_nodes, scaled.cluster.nodes);
  spec::LayoutSpec& layout = scaled.layout;
  layout.ranks = devices;
  const std::int64_t model = layout.tp * layout.pp * layout.cp * layout.ep;
  if (layout.dp == 1 && layout.fsdp > 1) {
    layout.fsdp = devices / model;
  } else {
    layout.dp = devices / (model * layout.fsdp);
  }
  return scaled;
}

std::int64_t smallest_of(const spec::LayoutSpec& layout) {
  const std::int64_t model = layout.tp * layout.pp * layout.cp * layout.ep;
  return layout.dp == 1 && layout.fsdp > 1 ? model : model * layout.fsdp;
}

}  // namespace

base::Result<std::vector<ScalePoint>> scaling_of(const spec::JobSpec& job, const Assumed& assumed,
                                                 const ModelConstants& constants) {
  const std::int64_t own = job.layout.dp * job.layout.inner_ranks();
  const std::int64_t per_node = job.cluster.devices_per_node;
  const bool one_node = job.cluster.network.kind == spec::NetworkKind::kNone;
  const std::int64_t most = one_node ? per_node : kMostTimes * own;
  std::vector<ScalePoint> points;
  // Halved down from the job's own number, then doubled up again: it is always among them.
  std::int64_t devices = own;
  const std::int64_t smallest = smallest_of(job.layout);
  while (devices % 2 == 0 && devices / 2 >= smallest && devices / 2 % smallest == 0) devices /= 2;
  for (; devices <= std::max(most, own); devices *= 2) {
    if (devices > per_node && devices % per_node != 0) continue;
    const spec::JobSpec scaled = on_devices(job, devices);
    ASSAY_TRY(Prediction made, predict(scaled, assumed, constants));
    points.push_back({.devices = devices,
                      .layout = scaled.layout,
                      .prediction = std::move(made),
                      .is_job = devices == own});
  }
  double best = 0;
  for (ScalePoint& point : points) {
    const double each = point.prediction.tokens_per_second / static_cast<double>(point.devices);
    if (best == 0 && point.prediction.fits) best = each;
    point.of_ideal = best > 0 ? each / best : 0;
  }
  return points;
}

}  // namespace assay::plan
