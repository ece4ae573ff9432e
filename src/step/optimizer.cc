// After the last micro-batch: the norm of all gradients, then one update per group. Each rank
// updates its own range of a group; for one rank that is all of it.
#include "step/builder.h"

namespace assay::step {
namespace {

View own_range(const GroupBuffers& group, BufferId buffer) {
  return {buffer, group.own.first, 1, group.own.count, group.own.count};
}

// Of a buffer that has this rank's range and nothing else.
View all_own(const GroupBuffers& group, BufferId buffer) {
  return {buffer, 0, 1, group.own.count, group.own.count};
}

void find_norm(Builder& b) {
  Program& p = b.program();
  std::vector<View> gradients;
  for (const GroupBuffers& group : p.groups) {
    if (group.elements > 0) gradients.push_back(own_range(group, group.gradients));
  }
  if (p.choices.layout.data.ranks > 1) gradients = {gather_norms(b, std::move(gradients))};
  b.emit({.kind = Kind::kGradientNorm,
          .part = Part::kAllGroups,
          .in = std::move(gradients),
          .out = {p.scalars}});
}

void update_group(Builder& b, const GroupBuffers& group, Part part) {
  Op op{.kind = Kind::kAdamw, .part = part};
  op.in = {own_range(group, group.gradients), b.program().scalars};
  op.out = {own_range(group, group.weights)};
  if (group.remainders >= 0) op.out.push_back(all_own(group, group.remainders));
  op.out.push_back(all_own(group, group.first_moment));
  op.out.push_back(all_own(group, group.second_moment));
  op.adds = 0xff;
  b.emit(std::move(op));
}

// Muon makes each matrix's update orthogonal, so matrices are updated one by one.
void update_matrix(Builder& b, const GroupBuffers& group, const Parameter& parameter) {
  const auto part_of = [&](BufferId buffer, std::int64_t first) {
    return View{buffer, parameter.offset - first, parameter.rows, parameter.cols, parameter.cols};
  };
  const std::int64_t own = group.own.first;
  Op op{.kind = Kind::kMuon, .part = parameter.part};
  op.in = {part_of(group.gradients, 0), b.program().scalars};
  op.out = {part_of(group.weights, 0)};
  if (group.remainders >= 0) op.out.push_back(part_of(group.remainders, own));
  op.out.push_back(part_of(group.first_moment, own));
  op.adds = 0xff;
  b.enter(Phase::kOptimizer, parameter.layer);
  b.emit(std::move(op));
}

}  // namespace

void build_optimizer(Builder& b) {
  Program& p = b.program();
  b.enter(Phase::kOptimizer);
  sum_gradients(b);
  find_norm(b);
  for (const Parameter& parameter : p.parameters) {
    if (parameter.group != Group::kMuon ||
        p.part_of(parameter, p.choices.layout.data.rank).count == 0)
      continue;
    update_matrix(b, p.of(Group::kMuon), parameter);
  }
  b.enter(Phase::kOptimizer);
  for (const auto& [group, part] :
       {std::pair{Group::kDecayed, Part::kDecayed}, {Group::kUndecayed, Part::kUndecayed}}) {
    if (p.of(group).elements > 0) update_group(b, p.of(group), part);
  }
  gather_weights(b);
}

}  // namespace assay::step
