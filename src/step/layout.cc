#include "step/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

#include "base/error.h"

namespace assay::step {
namespace {

struct Coordinate {
  AxisPosition place;
  std::int64_t apart = 1;  // difference in rank between neighbours along this axis
};

struct Coordinates {
  explicit Coordinates(const Layout& l)
      : tensor{l.tensor, 1},
        context{l.context, tensor.apart * l.tensor.ranks},
        expert{l.expert, context.apart * l.context.ranks},
        shard{l.shard, expert.apart * l.expert.ranks},
        replica{l.replica, shard.apart * l.shard.ranks},
        pipeline{l.pipeline, replica.apart * l.replica.ranks} {}

  Coordinate tensor, context, expert, shard, replica, pipeline;
};

// The group that varies along these axes, the last one fastest.
std::vector<std::int64_t> group(std::int64_t own, std::initializer_list<Coordinate> along) {
  for (const Coordinate& c : along) own -= c.place.rank * c.apart;
  std::vector<std::int64_t> ranks = {own};
  for (const Coordinate& c : along) {
    std::vector<std::int64_t> more;
    for (const std::int64_t rank : ranks) {
      for (std::int64_t i = 0; i < c.place.ranks; ++i) more.push_back(rank + i * c.apart);
    }
    ranks = std::move(more);
  }
  return ranks;
}

}  // namespace

Range Range::common(const Range& other) const {
  const std::int64_t from = std::max(first, other.first);
  return {from, std::max<std::int64_t>(0, std::min(end(), other.end()) - from)};
}

std::int64_t Layout::rank() const {
  const Coordinates c(*this);
  std::int64_t rank = 0;
  for (const Coordinate& axis : {c.tensor, c.context, c.expert, c.shard, c.replica, c.pipeline}) {
    rank += axis.place.rank * axis.apart;
  }
  return rank;
}

std::int64_t Layout::ranks() const {
  return tensor.ranks * context.ranks * shards().ranks * replica.ranks * pipeline.ranks;
}

AxisPosition Layout::along(Axis axis) const {
  switch (axis) {
    case Axis::kData:
      return data();
    case Axis::kShard:
      return shards();
    case Axis::kReplica:
      return within(replica, context);
    case Axis::kTensor:
      return tensor;
    case Axis::kContext:
      return context;
    case Axis::kPipeline:
    case Axis::kPipelineBack:
      return pipeline;
    case Axis::kWorld:
      return {rank(), ranks()};
    case Axis::kExpert:
      return expert;
    case Axis::kExpertData:
      return expert_data();
    case Axis::kExpertShard:
      return shard;
    case Axis::kNone:
      break;
  }
  return {};
}

std::vector<std::int64_t> Layout::members(Axis axis) const {
  const Coordinates c(*this);
  switch (axis) {
    case Axis::kData:
      return group(rank(), {c.shard, c.expert, c.replica, c.context});
    case Axis::kShard:
      return group(rank(), {c.shard, c.expert});
    case Axis::kReplica:
      return group(rank(), {c.replica, c.context});
    case Axis::kTensor:
      return group(rank(), {c.tensor});
    case Axis::kContext:
      return group(rank(), {c.context});
    case Axis::kPipeline:
    case Axis::kPipelineBack:
      return group(rank(), {c.pipeline});
    case Axis::kWorld:
      return group(0, {{{0, ranks()}, 1}});
    case Axis::kExpert:
      return group(rank(), {c.expert});
    case Axis::kExpertData:
      return group(rank(), {c.shard, c.replica, c.context});
    case Axis::kExpertShard:
      return group(rank(), {c.shard});
    case Axis::kNone:
      break;
  }
  return {rank()};
}

base::Result<Layout> layout_of(const spec::LayoutSpec& spec, std::int64_t rank) {
  Layout layout{.replica = {0, std::max<std::int64_t>(1, spec.dp)},
                .shard = {0, spec.fsdp},
                .expert = {0, spec.ep},
                .tensor = {0, spec.tp},
                .context = {0, spec.cp},
                .pipeline = {0, spec.pp},
                .zero = spec.zero,
                .unit = spec.unit,
                .schedule = spec.pp > 1 ? spec.pp_schedule : spec::PipelineSchedule::k1f1b,
                .chunks = spec.pp_chunks,
                .sequence_parallel = spec.sequence_parallel && spec.tp > 1};
  for (AxisPosition* place : {&layout.tensor, &layout.context, &layout.expert, &layout.shard,
                              &layout.replica, &layout.pipeline}) {
    place->rank = rank % place->ranks;
    rank /= place->ranks;
  }
  return layout;
}

}  // namespace assay::step
