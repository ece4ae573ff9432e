// After the last micro-batch: the norm of all gradients, then one update per group.
#include "step/builder.h"

namespace assay::step {
namespace {

View all_of(const Program& p, BufferId buffer) {
  const std::int64_t elements = p.buffers[static_cast<std::size_t>(buffer)].elements;
  return {buffer, 0, 1, elements, elements};
}

void update_group(Builder& b, const GroupBuffers& group, Part part) {
  Program& p = b.program();
  Op op{.kind = Kind::kAdamw, .part = part};
  op.in = {all_of(p, group.gradients), p.scalars};
  op.out = {all_of(p, group.weights)};
  if (group.remainders >= 0) op.out.push_back(all_of(p, group.remainders));
  op.out.push_back(all_of(p, group.first_moment));
  op.out.push_back(all_of(p, group.second_moment));
  op.adds = 0xff;
  b.emit(std::move(op));
}

// Muon makes each matrix's update orthogonal, so matrices are updated one by one.
void update_matrix(Builder& b, const GroupBuffers& group, const Parameter& parameter) {
  Program& p = b.program();
  const auto part_of = [&](BufferId buffer) {
    return View{buffer, parameter.offset, parameter.rows, parameter.cols, parameter.cols};
  };
  Op op{.kind = Kind::kMuon, .part = parameter.part};
  op.in = {part_of(group.gradients), p.scalars};
  op.out = {part_of(group.weights)};
  if (group.remainders >= 0) op.out.push_back(part_of(group.remainders));
  op.out.push_back(part_of(group.first_moment));
  op.adds = 0xff;
  b.enter(Phase::kOptimizer, parameter.layer);
  b.emit(std::move(op));
}

}  // namespace

void build_optimizer(Builder& b) {
  Program& p = b.program();
  b.enter(Phase::kOptimizer);
  Op norm{.kind = Kind::kGradientNorm, .part = Part::kAllGroups, .out = {p.scalars}};
  for (const GroupBuffers& group : p.groups) {
    if (group.elements > 0) norm.in.push_back(all_of(p, group.gradients));
  }
  b.emit(std::move(norm));
  for (const Parameter& parameter : p.parameters) {
    if (parameter.group == Group::kMuon) update_matrix(b, p.of(Group::kMuon), parameter);
  }
  b.enter(Phase::kOptimizer);
  for (const auto& [group, part] :
       {std::pair{Group::kDecayed, Part::kDecayed}, {Group::kUndecayed, Part::kUndecayed}}) {
    if (p.of(group).elements > 0) update_group(b, p.of(group), part);
  }
}

}  // namespace assay::step
