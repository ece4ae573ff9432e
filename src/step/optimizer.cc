// After the last micro-batch: the step's losses, the norm of all gradients, then the updates. Each
// rank updates what it keeps the optimizer's state of; for one rank that is everything.
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>

#include "step/builder.h"

namespace assay::step {
namespace {

// The sums of squares of a unit's blocks, in the vector that a rank has of them.
struct SumsPlace {
  std::int64_t first = 0;
  std::int64_t count = 0;  // of the rank with the most
};

class Optimizer {
 public:
  explicit Optimizer(Builder& b)
      : b_(b), p_(b.program()), data_(p_.choices.layout.data()), block_(norm_block(p_.model)) {}

  void build() {
    b_.enter(Phase::kOptimizer);
    measure_squares();
    begin_losses();
    // What is complete is squared while the rest is on its way.
    std::vector<bool> is_complete;
    for (std::size_t i = 0; i < p_.units.size(); ++i) {
      is_complete.push_back(!b_.is_on_its_way(static_cast<std::int32_t>(i)) &&
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
    find_norm();
    for (const std::size_t i : order_of_updates(is_complete)) {
      wait_for_gradients(i);
      update(i);
      b_.gather_for_next_step(static_cast<std::int32_t>(i));
    }
    for (const Op& op : gathers_) b_.wait(op);
    b_.finish_gathers_for_next_step();
  }

  // They travel behind what the caller does before it adds them up.
  void begin_losses() {
    const View own{p_.sums.buffer, 0, 1, p_.sums.elements(), p_.sums.elements()};
    losses_ = begin_gather("sums", Part::kLoss, own, Axis::kData);
  }
  // The last stage has them.
  void add_losses() {
    const View all = gather("sums", Part::kLoss, end_gather(losses_), {Axis::kPipeline});
    // Of mixtures every stage has some; what a stage does not know is 0 in its rows.
    const bool is_moe = p_.model.is_moe();
    b_.emit({.kind = Kind::kStepSums,
             .part = Part::kLoss,
             .in = {is_moe ? all : all.rows_from(all.rows - data_.ranks, data_.ranks)},
             .out = {p_.scalars.columns(0, kSummedScalars)}});
    if (is_moe) add_loads();
  }

 private:
  // A rank has counted its own tokens, in the mixtures of its stage.
  void add_loads() {
    const std::int64_t elements = p_.loads.elements();
    const View own{p_.loads.buffer, 0, 1, elements, elements};
    const View all = gather("expert loads", Part::kRouter, own, {Axis::kData, Axis::kPipeline});
    if (all.buffer == own.buffer) return;
    b_.emit({.kind = Kind::kFold, .part = Part::kRouter, .in = {all}, .out = {own}});
  }

  [[nodiscard]] std::vector<const Parameter*> parameters_of(std::size_t unit) const {
    std::vector<const Parameter*> list;
    for (const Parameter& p : p_.parameters) {
      if (static_cast<std::size_t>(p.unit) == unit) list.push_back(&p);
    }
    std::stable_sort(list.begin(), list.end(),
                     [](const Parameter* a, const Parameter* b) { return a->offset < b->offset; });
    return list;
  }

  // A table that is also the head has two sums of gradients, which become one: on the first and the
  // last stage, which both keep the table.
  void add_head_gradients() {
    const Place& stages = p_.choices.layout.pipeline;
    for (std::size_t i = 0; i < p_.units.size(); ++i) {
      const Unit& unit = p_.units[i];
      if (unit.head_gradients < 0) continue;
      const View looked_up = unit.in_own(unit.gradients, unit.part);
      const View head = unit.in_own(unit.head_gradients, unit.part);
      if (stages.ranks > 1) {
        const bool first = p_.choices.layout.first_stage();
        const auto other = static_cast<std::int32_t>(first ? stages.ranks - 1 : 0);
        const Op sent = b_.issue({.kind = Kind::kSend,
                                  .part = Part::kHead,
                                  .in = {first ? looked_up : head},
                                  .axis = first ? Axis::kPipeline : Axis::kPipelineBack,
                                  .peer = other});
        const Op received = b_.issue({.kind = Kind::kReceive,
                                      .part = Part::kHead,
                                      .out = {first ? head : looked_up},
                                      .axis = first ? Axis::kPipelineBack : Axis::kPipeline,
                                      .peer = other});
        b_.wait(sent);
        b_.wait(received);
      }
      b_.emit({.kind = Kind::kFold,
               .part = Part::kAllGroups,
               .in = {head},
               .out = {looked_up},
               .adds = 1,
               .unit = static_cast<std::int32_t>(i)});
    }
  }

  // Where every tensor-parallel rank has a parameter and makes a part of its gradient, all add up
  // all parts.
  void add_partial_gradients() {
    const Place& tensor = p_.choices.layout.tensor;
    for (std::size_t i = 0; i < p_.units.size(); ++i) {
      const Unit& unit = p_.units[i];
      for (const Range& range : partial_ranges(i)) {
        const View own = unit.in_own(unit.gradients, range);
        const View all =
            b_.matrix(fmt::format("{} partial gradients", unit.name), tensor.ranks, range.count,
                      p_.choices.numerics.gradients, Storage::kActivations);
        b_.wait(gather_along(Axis::kTensor, Part::kUndecayed, own, all, -1));
        b_.emit({.kind = Kind::kFold,
                 .part = Part::kUndecayed,
                 .in = {all},
                 .out = {own},
                 .unit = static_cast<std::int32_t>(i)});
      }
    }
  }

  [[nodiscard]] bool has_partial_gradients(std::size_t unit) const {
    return std::ranges::any_of(parameters_of(unit), &Parameter::partial_gradient);
  }

  // What this rank adds up of such parameters: neighbours together.
  [[nodiscard]] std::vector<Range> partial_ranges(std::size_t unit) const {
    std::vector<Range> ranges;
    std::int64_t end = -1;  // of the parameter before, with the gap after it
    for (const Parameter* p : parameters_of(unit)) {
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

  Op gather_along(Axis axis, Part part, const View& own, const View& all, std::int32_t unit) {
    return b_.issue({.kind = Kind::kAllGather,
                     .part = part,
                     .in = {own},
                     .out = {all},
                     .axis = axis,
                     .unit = unit});
  }

  // Everybody's along an axis: on its way, or what this rank has if it is alone.
  struct Gathering {
    View all;
    std::optional<Op> issued;
  };
  Gathering begin_gather(const char* name, Part part, const View& own, Axis axis) {
    const Place place = p_.choices.layout.along(axis);
    if (place.ranks == 1) return {own, std::nullopt};
    const View all = b_.matrix(fmt::format("{} by {}", name, to_text(axis)), own.rows * place.ranks,
                               own.cols, Dtype::kF32, Storage::kScalars);
    return {all, gather_along(axis, part, own, all, -1)};
  }
  View end_gather(const Gathering& gathering) {
    if (gathering.issued) b_.wait(*gathering.issued);
    return gathering.all;
  }
  // Along some axes: rows of the ranks along the first, for each along the second, …
  View gather(const char* name, Part part, const View& own, std::initializer_list<Axis> axes) {
    View everyones = own;
    for (const Axis axis : axes) {
      everyones = end_gather(begin_gather(name, part, everyones, axis));
    }
    return everyones;
  }

  // Units whose gradients came last are those that the next step needs first. They are updated
  // first, so that their weights are gathered behind the updates of the others; but where replicas
  // gather gradients as well, half of the others come before, for these to travel behind.
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

  // What each rank has added up is its own to square; the sums go to everyone.
  void measure_squares() {
    places_ = sums_places();
    std::int64_t most = 0;
    for (const SumsPlace& place : places_) most = std::max(most, place.first + place.count);
    squares_ = b_.matrix("sums of squares", 1, most, Dtype::kF32, Storage::kScalars);
  }
  void square_and_gather(std::size_t index) {
    const Unit& unit = p_.units[index];
    // Of a table that the last stage has as well, the first one's counts.
    if (unit.stage == p_.choices.layout.pipeline.rank) {
      const SumsPlace& place = places_[model_unit(unit)];
      square(index, squares_.columns(place.first, place.count));
    }
    gather_gradients(index);
  }
  void find_norm() {
    b_.emit({.kind = Kind::kGradientNorm,
             .part = Part::kAllGroups,
             .in = in_order(places_, gather("sums of squares", Part::kAllGroups, squares_,
                                            {Axis::kData, Axis::kTensor, Axis::kPipeline})),
             .out = {p_.scalars}});
  }

  // For each unit of the model, in the vector of a rank of its stage.
  [[nodiscard]] std::vector<SumsPlace> sums_places() const {
    std::vector<SumsPlace> places;
    std::map<std::int64_t, std::int64_t> used;  // by stage
    for (const Unit& unit : p_.model_units) {
      std::int64_t most = 0;
      for (const Range& part : unit.parts) most = std::max(most, part.count / block_);
      places.push_back({used[unit.stage], most});
      used[unit.stage] += most;
    }
    return places;
  }
  [[nodiscard]] std::size_t model_unit(const Unit& unit) const {
    const auto found =
        std::ranges::find(p_.model_units, unit.name, [](const Unit& u) { return u.name; });
    return static_cast<std::size_t>(found - p_.model_units.begin());
  }

  // Gaps between parameters hold no gradients, so each parameter is squared by itself.
  void square(std::size_t index, const View& sums) {
    const Unit& unit = p_.units[index];
    Op op{.kind = Kind::kNormSums,
          .part = Part::kAllGroups,
          .unit = static_cast<std::int32_t>(index)};
    for (const Parameter* p : parameters_of(index)) {
      const Range part = unit.part.common({p->offset, (p->rows + p->padding_rows) * p->cols});
      if (part.count == 0 || p->group == Group::kBalanced) continue;
      op.in.push_back(unit.in_own(unit.gradients, part));
      op.out.push_back(sums.columns((part.first - unit.part.first) / block_,
                                    (part.count + block_ - 1) / block_));
    }
    if (!op.in.empty()) b_.emit(std::move(op));
  }

  // What one tensor-parallel rank has of a unit; what all of them have counts as the first one's.
  [[nodiscard]] std::vector<View> of_tensor_rank(std::size_t unit, std::int64_t rank,
                                                 const SumsPlace& place, const View& rows) const {
    std::vector<View> list;
    const std::vector<Range>& parts = p_.model_units[unit].parts;
    for (const Parameter& p : p_.model_parameters) {
      if (static_cast<std::size_t>(p.unit) != unit || (rank > 0 && !p.slice.cut)) continue;
      for (std::size_t data = 0; data < parts.size(); ++data) {
        const Range part = parts[data].common({p.offset, (p.rows + p.padding_rows) * p.cols});
        if (part.count == 0) continue;
        list.push_back(rows.rows_from(static_cast<std::int64_t>(data), 1)
                           .columns(place.first + (part.first - parts[data].first) / block_,
                                    (part.count + block_ - 1) / block_));
      }
    }
    return list;
  }

  // All blocks in the order of the model's parameters, whoever has added them up.
  [[nodiscard]] std::vector<View> in_order(const std::vector<SumsPlace>& places,
                                           const View& everyones) const {
    std::vector<View> list;
    const auto add = [&](View view) {
      if (!list.empty() && list.back().rows == 1 && view.rows == 1 &&
          list.back().offset + list.back().cols == view.offset) {
        list.back().cols += view.cols;
        list.back().stride += view.cols;
      } else {
        list.push_back(view);
      }
    };
    const std::int64_t tensor_ranks = p_.choices.layout.tensor.ranks;
    for (std::size_t i = 0; i < p_.model_units.size(); ++i) {
      const Unit& unit = p_.model_units[i];
      if (tensor_ranks > 1) {
        for (std::int64_t rank = 0; rank < tensor_ranks; ++rank) {
          const View of_rank =
              everyones.rows_from((unit.stage * tensor_ranks + rank) * data_.ranks, data_.ranks);
          for (const View& view : of_tensor_rank(i, rank, places[i], of_rank)) add(view);
        }
        continue;
      }
      const View of_stage = everyones.rows_from(unit.stage * data_.ranks, data_.ranks);
      if (!unit.whole_matrices) {
        // Rank after rank, and nothing of what pads the last parts: so a block is at the same place
        // in this order on any number of ranks.
        const View all = of_stage.columns(places[i].first, places[i].count);
        const std::int64_t blocks = unit.used / block_;
        const std::int64_t rows = blocks / all.cols;
        if (rows > 0) add(all.rows_from(0, rows));
        if (rows * all.cols < blocks) {
          add(all.rows_from(rows, 1).columns(0, blocks - rows * all.cols));
        }
        continue;
      }
      for (const Parameter& p : p_.model_parameters) {
        if (static_cast<std::size_t>(p.unit) != i) continue;
        for (std::size_t rank = 0; rank < unit.parts.size(); ++rank) {
          const Range& part = unit.parts[rank];
          if (p.offset < part.first || p.offset >= part.end()) continue;
          add(of_stage.rows_from(static_cast<std::int64_t>(rank), 1)
                  .columns(places[i].first + (p.offset - part.first) / block_,
                           (p.elements() + block_ - 1) / block_));
        }
      }
    }
    return list;
  }

  // Replicas have added up different parts of what each of them updates.
  void gather_gradients(std::size_t index) {
    const Unit& unit = p_.units[index];
    if (unit.part == unit.own) return;
    waiting_[index] =
        gather_along(Axis::kReplica, Part::kAllGroups, unit.in_own(unit.gradients, unit.part),
                     unit.in_own(unit.gradients, unit.own), static_cast<std::int32_t>(index));
  }
  void wait_for_gradients(std::size_t index) {
    if (const auto op = waiting_.find(index); op != waiting_.end()) b_.wait(op->second);
  }

  [[nodiscard]] View weights_of(const Unit& unit, const Range& range) const {
    if (p_.choices.layout.gathers_weights()) return unit.in_own(unit.weights, range);
    return {unit.weights, range.first, 1, range.count, range.count};
  }

  void update(std::size_t index) {
    const Unit& unit = p_.units[index];
    const std::vector<const Parameter*> parameters = parameters_of(index);
    for (std::size_t from = 0; from < parameters.size();) {
      const Group group = parameters[from]->group;
      std::size_t to = from + 1;
      if (group == Group::kMuon) {
        if (parameters[from]->offset >= unit.own.first &&
            parameters[from]->offset < unit.own.end()) {
          update_matrix(index, *parameters[from]);
        }
        from = to;
        continue;
      }
      // Neighbours that are treated alike are one range.
      while (to < parameters.size() && parameters[to]->group == group) ++to;
      const std::int64_t end = to < parameters.size() ? parameters[to]->offset : unit.elements;
      const std::int64_t first = parameters[from]->offset;
      update_range(index, unit.own.common({first, end - first}), group);
      from = to;
    }
    b_.enter(Phase::kOptimizer);
    gather_weights(index);
  }

  void update_range(std::size_t index, const Range& range, Group group) {
    if (range.count == 0) return;
    const Unit& unit = p_.units[index];
    Op op{.kind = Kind::kAdamw,
          .part = group == Group::kDecayed ? Part::kDecayed : Part::kUndecayed,
          .adds = 0xff,
          .unit = static_cast<std::int32_t>(index),
          .element = unit.first_element + range.first};
    op.in = {unit.in_own(unit.gradients, range), p_.scalars};
    op.out = {weights_of(unit, range)};
    std::vector<BufferId> states = {unit.remainders, unit.first_moment, unit.second_moment};
    if (group == Group::kBalanced) {
      op.kind = Kind::kBalance;
      op.part = Part::kRouter;
      states.resize(1);
    }
    for (const BufferId state : states) {
      if (state >= 0) op.out.push_back(unit.in_own(state, range));
    }
    b_.enter(Phase::kOptimizer, unit.layer);
    b_.emit(std::move(op));
  }

  // Muon makes each matrix's update orthogonal, so matrices are updated one by one.
  void update_matrix(std::size_t index, const Parameter& p) {
    const Unit& unit = p_.units[index];
    const auto in = [&](BufferId buffer, std::int64_t first) {
      return View{buffer, p.offset - first, p.rows, p.cols, p.cols};
    };
    Op op{.kind = Kind::kMuon,
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

  // Where every rank keeps all weights, it gets what the others have updated.
  void gather_weights(std::size_t index) {
    const Unit& unit = p_.units[index];
    if (p_.choices.layout.gathers_weights() || unit.own.count == unit.elements) return;
    const Axis axis = unit.whole_matrices ? Axis::kData : Axis::kShard;
    const View whole{unit.weights, 0, 1, unit.elements, unit.elements};
    gathers_.push_back(gather_along(axis, Part::kAllGroups,
                                    whole.columns(unit.own.first, unit.own.count), whole,
                                    static_cast<std::int32_t>(index)));
  }

  Builder& b_;
  Program& p_;
  Place data_;
  std::int64_t block_;
  std::vector<SumsPlace> places_;  // of each unit of the model
  View squares_;                   // this rank's
  std::map<std::size_t, Op> waiting_;
  std::vector<Op> gathers_;
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

}  // namespace assay::step
