#include "plan/scaling.h"

#include <algorithm>
#include <span>

#include "plan/rank_footprints.h"

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

// Memory in closed form is within this factor of the programs'. Counting takes up to a second per
// number of devices, so it is left out where it would decide nothing.
constexpr double kCertain = 1.6;

bool is_certain(const MemoryNeed& need, base::Bytes device) {
  const double share = need.total() / device;
  return share > kCertain || share < 1 / kCertain;
}

class Scaling {
 public:
  Scaling(const spec::JobSpec& job, const Plan& plan, const PlanInputs& inputs)
      : job_(job),
        plan_(plan),
        inputs_(inputs),
        assumed_{.framework = parse_framework(plan.framework),
                 .imbalance = inputs.assumed.imbalance},
        own_(recompute_of(plan)) {}

  base::Result<ScalePoint> on(std::int64_t devices) const {
    const spec::JobSpec scaled = on_devices(job_, devices);
    ScalePoint point{.devices = devices, .layout = scaled.layout};
    if (devices == job_.layout.dp * job_.layout.inner_ranks()) {
      ASSAY_TRY(point.prediction, predict(with(scaled, own_), assumed_, inputs_.constants));
      take_plan(point);
      return point;
    }
    ASSAY_TRY(point.prediction, predicted(with(scaled, own_)));
    if (point.prediction.fits || job_.train.recompute != spec::Recompute::kAuto) return point;
    const auto kinds = recomputations_of(point.prediction.work.software.framework);
    for (auto more = std::find(kinds.begin(), kinds.end(), own_); more != kinds.end(); ++more) {
      if (*more == own_) continue;
      ASSAY_TRY(Prediction made, predicted(with(scaled, *more)));
      if (!made.fits) continue;
      point.prediction = std::move(made);
      point.own_recompute = false;
      break;
    }
    return point;
  }

 private:
  static spec::JobSpec with(spec::JobSpec job, RecomputeKind kind) {
    job.train.recompute = recompute_key(kind);
    return job;
  }

  // The plan's own figures.
  void take_plan(ScalePoint& point) const {
    point.is_job = true;
    Prediction& own = point.prediction;
    if (plan_.step) {
      own.step = plan_.step->time;
      own.tokens_per_second = plan_.step->tokens_per_s;
      own.mfu = plan_.step->mfu;
      own.mfu_with_embedding = plan_.step->mfu_with_embedding;
    }
    if (plan_.memory) {
      own.memory = plan_.memory->need;
      own.fits = plan_.memory->fits();
    }
  }

  [[nodiscard]] base::Result<Prediction> predicted(const spec::JobSpec& job) const {
    ASSAY_TRY(Prediction made, predict(job, assumed_, inputs_.constants));
    const base::Bytes device = made.work.card.memory;
    if (made.work.trainer == nullptr || is_certain(made.memory, device)) return made;
    if (const auto counted = counted_memory(job)) {
      made.memory = *counted;
      made.fits = counted->total() <= device;
    }
    return made;
  }

  const spec::JobSpec& job_;
  const Plan& plan_;
  const PlanInputs& inputs_;
  Assumed assumed_;
  RecomputeKind own_;
};

void compare_with_smallest(std::vector<ScalePoint>& points) {
  double best = 0;
  for (ScalePoint& point : points) {
    if (!point.prediction.fits || !point.own_recompute) continue;
    const double each = point.prediction.tokens_per_second / static_cast<double>(point.devices);
    if (best == 0) best = each;
    point.of_ideal = each / best;
  }
}

}  // namespace

base::Result<std::vector<ScalePoint>> scaling_of(const spec::JobSpec& job, const Plan& plan,
                                                 const PlanInputs& inputs) {
  const std::int64_t own = job.layout.dp * job.layout.inner_ranks();
  const std::int64_t per_node = job.cluster.devices_per_node;
  const bool one_node = job.cluster.network.kind == spec::NetworkKind::kNone;
  const std::int64_t most = one_node ? per_node : kMostTimes * own;
  const Scaling scaling(job, plan, inputs);
  std::vector<ScalePoint> points;
  // Halved down from the job's own number, then doubled up again: it is always among them.
  std::int64_t devices = own;
  const std::int64_t smallest = smallest_of(job.layout);
  while (devices % 2 == 0 && devices / 2 >= smallest && devices / 2 % smallest == 0) devices /= 2;
  for (; devices <= std::max(most, own); devices *= 2) {
    if (devices > per_node && devices % per_node != 0) continue;
    ASSAY_TRY(ScalePoint point, scaling.on(devices));
    points.push_back(std::move(point));
  }
  compare_with_smallest(points);
  return points;
}

}  // namespace assay::plan
