#include "step/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "step/gradient_norm.h"
#include "step/updates.h"

namespace assay::step {
namespace {

class Optimizer {
 public:
  explicit Optimizer(Builder& b)
      : b_(b),
        p_(b.program()),
        data_(p_.choices.layout.data()),
        block_(norm_block(p_.model)),
        norm_(b),
        updates_(b) {}

  void build() {
    b_.enter(Phase::kOptimizer);
    norm_.measure_squares();
    begin_losses();
    // Complete gradients are squared while the rest is in flight.
    std::vector<bool> is_complete;
    for (std::size_t i = 0; i < p_.units.size(); ++i) {
      is_complete.push_back(!b_.is_in_flight(static_cast<std::int32_t>(i)) &&
                            p_.units[i].head_gradients < 0 && !has_partial_gradients(i));
      if (is_complete.back()) square_and_gather(i);
    }
    b_.enter(Phase::kBackward);
    b_.finish_exchanges();
    b_.enter(Phase::kOptimizer);
    add_head_gradients();
    add_partial_gradients();
    for (std::size_t i = 0; i < p_.units.size(); ++i) {
      if (!is_complete[i]) square_and_gather(i);
    }
    add_losses();
    norm_.find_norm();
    for (const std::size_t i : order_of_updates(is_complete)) {
      wait_for_gradients(i);
      updates_.update(i);
      b_.gather_for_next_step(static_cast<std::int32_t>(i));
    }
    updates_.finish();
    b_.finish_gathers_for_next_step();
  }

  // The gather overlaps with what the caller does before add_losses().
  void begin_losses() {
    const View own{p_.sums.buffer, 0, 1, p_.sums.elements(), p_.sums.elements()};
    losses_ = begin_gather(b_, "sums", ModelPart::kLoss, own, Axis::kData);
  }
  // The last stage has the losses.
  void add_losses() {
    const View all =
        gather(b_, "sums", ModelPart::kLoss, end_gather(b_, losses_), {Axis::kPipeline});
    // Every stage has some of the mixtures; rows are 0 where a stage knows nothing.
    const bool is_moe = p_.model.is_moe();
    b_.emit({.kind = OpKind::kStepSums,
             .part = ModelPart::kLoss,
             .in = {is_moe ? all : all.rows_from(all.rows - data_.ranks, data_.ranks)},
             .out = {p_.scalars.columns(0, kSummedScalars)}});
    if (is_moe) add_loads();
  }

 private:
  // A rank has counted its own tokens, in the mixtures of its stage. The sums go to a separate
  // buffer: the counts of other stages' mixtures must stay 0 for the next step.
  void add_loads() {
    const std::int64_t elements = p_.loads.elements();
    const View own{p_.loads.buffer, 0, 1, elements, elements};
    const View all =
        gather(b_, "expert loads", ModelPart::kRouter, own, {Axis::kData, Axis::kPipeline});
    if (all.buffer == own.buffer) return;
    const View sums = b_.matrix("expert loads of all", p_.loads.rows, p_.loads.cols, Dtype::kF32,
                                Storage::kScalars);
    const View row{sums.buffer, 0, 1, elements, elements};
    b_.emit({.kind = OpKind::kFold, .part = ModelPart::kRouter, .in = {all}, .out = {row}});
    p_.loads = sums;
  }

  // A table that is also the head has two sums of gradients, which are added: on the first and the
  // last stage, which both keep the table.
  void add_head_gradients() {
    const AxisPosition& stages = p_.choices.layout.pipeline;
    for (std::size_t i = 0; i < p_.units.size(); ++i) {
      const Unit& unit = p_.units[i];
      if (unit.head_gradients < 0) continue;
      const View looked_up = unit.in_own(unit.gradients, unit.part);
      const View head = unit.in_own(unit.head_gradients, unit.part);
      if (stages.ranks > 1) {
        const bool first = p_.choices.layout.first_stage();
        const auto other = static_cast<std::int32_t>(first ? stages.ranks - 1 : 0);
        const Op sent = b_.issue({.kind = OpKind::kSend,
                                  .part = ModelPart::kHead,
                                  .in = {first ? looked_up : head},
                                  .axis = first ? Axis::kPipeline : Axis::kPipelineBack,
                                  .peer = other});
        const Op received = b_.issue({.kind = OpKind::kReceive,
                                      .part = ModelPart::kHead,
                                      .out = {first ? head : looked_up},
                                      .axis = first ? Axis::kPipelineBack : Axis::kPipeline,
                                      .peer = other});
        b_.wait(sent);
        b_.wait(received);
      }
      b_.emit({.kind = OpKind::kFold,
               .part = ModelPart::kAllGroups,
               .in = {head},
               .out = {looked_up},
               .adds = 1,
               .unit = static_cast<std::int32_t>(i)});
    }
  }

  // For parameters that every tensor-parallel rank has in full, with a part of the gradient each:
  // all ranks sum all parts.
  void add_partial_gradients() {
    const AxisPosition& tensor = p_.choices.layout.tensor;
    for (std::size_t i = 0; i < p_.units.size(); ++i) {
      const Unit& unit = p_.units[i];
      for (const Range& range : partial_ranges(i)) {
        const View own = unit.in_own(unit.gradients, range);
        const View all =
            b_.matrix(fmt::format("{} partial gradients", unit.name), tensor.ranks, range.count,
                      p_.choices.numerics.gradients, Storage::kActivations);
        b_.wait(gather_along(b_, Axis::kTensor, ModelPart::kUndecayed, own, all, -1));
        b_.emit({.kind = OpKind::kFold,
                 .part = ModelPart::kUndecayed,
                 .in = {all},
                 .out = {own},
                 .unit = static_cast<std::int32_t>(i)});
      }
    }
  }

  [[nodiscard]] bool has_partial_gradients(std::size_t unit) const {
    return std::ranges::any_of(parameters_of_unit(p_, unit), &Parameter::partial_gradient);
  }

  // The ranges of such parameters that this rank sums, adjacent ones merged.
  [[nodiscard]] std::vector<Range> partial_ranges(std::size_t unit) const {
    std::vector<Range> ranges;
    std::int64_t end = -1;  // of the previous parameter, including the gap after it
    for (const Parameter* p : parameters_of_unit(p_, unit)) {
      const std::int64_t room = (p->elements() + block_ - 1) / block_ * block_;
      const Range part = p_.units[unit].part.common({p->offset, room});
      if (!p->partial_gradient || part.count == 0) continue;
      if (part.first == end) {
        ranges.back().count += part.count;
      } else {
        ranges.push_back(part);
      }
      end = part.end();
    }
    return ranges;
  }

  // Units whose gradients came last are those that the next step needs first. They are updated
  // first, so that gathering their weights overlaps with the other updates; but if replicas also
  // gather gradients, half of the others come before them, to hide that.
  [[nodiscard]] std::vector<std::size_t> order_of_updates(
      const std::vector<bool>& is_complete) const {
    std::vector<std::size_t> early;
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < p_.units.size(); ++i) {
      const bool is_early = !is_complete[i] || b_.is_gathered_first(static_cast<std::int32_t>(i));
      (is_early ? early : order).push_back(i);
    }
    const std::size_t before = waiting_.empty() ? 0 : order.size() / 2;
    order.insert(order.begin() + static_cast<std::ptrdiff_t>(before), early.begin(), early.end());
    return order;
  }

  void square_and_gather(std::size_t index) {
    norm_.square(index);
    gather_gradients(index);
  }

  // Replicas have summed different parts of what each of them updates.
  void gather_gradients(std::size_t index) {
    const Unit& unit = p_.units[index];
    if (unit.part == unit.own) return;
    waiting_[index] = gather_along(
        b_, Axis::kReplica, ModelPart::kAllGroups, unit.in_own(unit.gradients, unit.part),
        unit.in_own(unit.gradients, unit.own), static_cast<std::int32_t>(index));
  }
  void wait_for_gradients(std::size_t index) {
    if (const auto op = waiting_.find(index); op != waiting_.end()) b_.wait(op->second);
  }

  Builder& b_;
  Program& p_;
  AxisPosition data_;
  std::int64_t block_;
  GradientNorm norm_;
  Updates updates_;
  std::map<std::size_t, Op> waiting_;
  Gathering losses_;
};

}  // namespace

void add_losses(Builder& b) {
  b.enter(Phase::kOptimizer);
  Optimizer optimizer(b);
  optimizer.begin_losses();
  optimizer.add_losses();
}

void build_optimizer(Builder& b) {
  Optimizer(b).build();
}

std::vector<const Parameter*> parameters_of_unit(const Program& program, std::size_t unit) {
  std::vector<const Parameter*> list;
  for (const Parameter& p : program.parameters) {
    if (static_cast<std::size_t>(p.unit) == unit) list.push_back(&p);
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const Parameter* a, const Parameter* b) { return a->offset < b->offset; });
  return list;
}

Op gather_along(Builder& b, Axis axis, ModelPart part, const View& own, const View& all,
                std::int32_t unit) {
  return b.issue({.kind = OpKind::kAllGather,
                  .part = part,
                  .in = {own},
                  .out = {all},
                  .axis = axis,
                  .unit = unit});
}

Gathering begin_gather(Builder& b, const char* name, ModelPart part, const View& own, Axis axis) {
  const AxisPosition place = b.program().choices.layout.along(axis);
  if (place.ranks == 1) return {own, std::nullopt};
  const View all = b.matrix(fmt::format("{} by {}", name, to_text(axis)), own.rows * place.ranks,
                            own.cols, Dtype::kF32, Storage::kScalars);
  return {all, gather_along(b, axis, part, own, all, -1)};
}

View end_gather(Builder& b, const Gathering& gathering) {
  if (gathering.issued) b.wait(*gathering.issued);
  return gathering.all;
}

View gather(Builder& b, const char* name, ModelPart part, const View& own,
            std::initializer_list<Axis> axes) {
  View everyones = own;
  for (const Axis axis : axes) {
    everyones = end_gather(b, begin_gather(b, name, part, everyones, axis));
  }
  return everyones;
}

}  // namespace assay::step
