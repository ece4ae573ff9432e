// Collectives among ranks that read different tokens: sums of losses and gradients, and the weights
// that each has updated. One rank has none.
#include "step/builder.h"

namespace assay::step {
namespace {

constexpr Part kPartOf[kGroups] = {Part::kMatrices, Part::kDecayed, Part::kUndecayed};

Place place_of(const Builder& b) {
  return b.program().choices.layout.data;
}

Op among_ranks(Kind kind, Part part, const View& in, const View& out) {
  return {.kind = kind, .part = part, .in = {in}, .out = {out}, .axis = Axis::kData};
}

// task(group's part, the whole buffer, this rank's range of it), for each group there is.
template <class Task>
void for_groups(const Builder& b, BufferId GroupBuffers::*buffer, Task task) {
  if (place_of(b).ranks == 1) return;
  for (int i = 0; i < kGroups; ++i) {
    const GroupBuffers& group = b.program().groups[i];
    if (group.elements == 0) continue;
    const View whole{group.*buffer, 0, 1, group.elements, group.elements};
    task(kPartOf[i], whole, whole.columns(group.own.first, group.own.count));
  }
}

}  // namespace

void sum_losses(Builder& b) {
  if (place_of(b).ranks == 1) return;
  b.enter(Phase::kOptimizer);
  const View sums = b.program().scalars.columns(0, kSummedScalars);
  b.emit(among_ranks(Kind::kAllReduce, Part::kLoss, sums, sums));
}

void sum_gradients(Builder& b) {
  for_groups(b, &GroupBuffers::gradients, [&](Part part, const View& whole, const View& own) {
    b.emit(among_ranks(Kind::kReduceScatter, part, whole, own));
  });
}

View gather_norms(Builder& b, std::vector<View> own_gradients) {
  const Place place = place_of(b);
  const View norms = b.matrix("norms by rank", 1, place.ranks, Dtype::kF32, Storage::kScalars);
  const View own = norms.columns(place.rank, 1);
  b.emit({.kind = Kind::kRangeNorm,
          .part = Part::kAllGroups,
          .in = std::move(own_gradients),
          .out = {own}});
  b.emit(among_ranks(Kind::kAllGather, Part::kAllGroups, own, norms));
  return norms;
}

void gather_weights(Builder& b) {
  for_groups(b, &GroupBuffers::weights, [&](Part part, const View& whole, const View& own) {
    b.emit(among_ranks(Kind::kAllGather, part, own, whole));
  });
}

}  // namespace assay::step
