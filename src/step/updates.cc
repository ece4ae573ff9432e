#include "step/updates.h"

#include "step/optimizer.h"

namespace assay::step {

View Updates::weights_of(const Unit& unit, const Range& range) const {
  if (unit.gathered) return unit.in_own(unit.weights, range);
  return {unit.weights, range.first, 1, range.count, range.count};
}

void Updates::update(std::size_t index) {
  const Unit& unit = p_.units[index];
  const std::vector<const Parameter*> parameters = parameters_of_unit(p_, index);
  for (std::size_t from = 0; from < parameters.size();) {
    const UpdateRule rule = parameters[from]->rule;
    std::size_t to = from + 1;
    if (rule == UpdateRule::kMuon) {
      if (parameters[from]->offset >= unit.own.first && parameters[from]->offset < unit.own.end()) {
        update_matrix(index, *parameters[from]);
      }
      from = to;
      continue;
    }
    // Adjacent parameters that are treated alike form one range.
    while (to < parameters.size() && parameters[to]->rule == rule) ++to;
    const std::int64_t end = to < parameters.size() ? parameters[to]->offset : unit.elements;
    const std::int64_t first = parameters[from]->offset;
    update_range(index, unit.own.common({first, end - first}), rule);
    from = to;
  }
  b_.enter(Phase::kOptimizer);
  gather_weights(index);
}

void Updates::update_range(std::size_t index, const Range& range, UpdateRule rule) {
  if (range.count == 0) return;
  const Unit& unit = p_.units[index];
  Op op{.kind = OpKind::kAdamw,
        .part = rule == UpdateRule::kDecayed ? ModelPart::kDecayed : ModelPart::kUndecayed,
        .adds = 0xff,
        .unit = static_cast<std::int32_t>(index),
        .element = unit.first_element + range.first};
  op.in = {unit.in_own(unit.gradients, range), p_.scalars};
  op.out = {weights_of(unit, range)};
  std::vector<BufferId> states = {unit.remainders, unit.first_moment, unit.second_moment};
  if (rule == UpdateRule::kBalanced) {
    op.kind = OpKind::kBalance;
    op.part = ModelPart::kRouter;
    states.resize(1);
  }
  for (const BufferId state : states) {
    if (state >= 0) op.out.push_back(unit.in_own(state, range));
  }
  b_.enter(Phase::kOptimizer, unit.layer);
  b_.emit(std::move(op));
}

// Muon orthogonalises each matrix's update, so matrices are updated one by one.
void Updates::update_matrix(std::size_t index, const Parameter& p) {
  const Unit& unit = p_.units[index];
  const auto in = [&](BufferId buffer, std::int64_t first) {
    return View{buffer, p.offset - first, p.rows, p.cols, p.cols};
  };
  Op op{.kind = OpKind::kMuon,
        .part = p.part,
        .adds = 0xff,
        .unit = static_cast<std::int32_t>(index)};
  op.in = {in(unit.gradients, unit.own.first), p_.scalars};
  op.out = {in(unit.weights, 0)};
  if (unit.remainders >= 0) op.out.push_back(in(unit.remainders, unit.own.first));
  op.out.push_back(in(unit.first_moment, unit.own.first));
  b_.enter(Phase::kOptimizer, p.layer);
  b_.emit(std::move(op));
}

// If every rank keeps all weights, it gathers what the others have updated.
void Updates::gather_weights(std::size_t index) {
  const Unit& unit = p_.units[index];
  if (unit.gathered || unit.own.count == unit.elements) return;
  const Axis axis = unit.whole_matrices ? unit.data : unit.shard;
  const View whole{unit.weights, 0, 1, unit.elements, unit.elements};
  gathers_.push_back(gather_along(b_, axis, ModelPart::kAllGroups,
                                  whole.columns(unit.own.first, unit.own.count), whole,
                                  static_cast<std::int32_t>(index)));
}

void Updates::finish() {
  for (const Op& op : gathers_) b_.wait(op);
}

}  // namespace assay::step
