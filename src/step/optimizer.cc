// After the last micro-batch: the step's losses, the norm of all gradients, then the updates. Each
// rank updates what it keeps the optimizer's state of; for one rank that is everything.
#include <algorithm>

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
    b_.enter(Phase::kBackward);
    b_.finish_exchanges();
    b_.enter(Phase::kOptimizer);
    add_head_gradients();
    find_norm();
    for (std::size_t i = 0; i < p_.units.size(); ++i) {
      wait_for_gradients(i);
      update(i);
    }
    for (const Op& op : gathers_) b_.wait(op);
  }

 private:
  [[nodiscard]] std::vector<const Parameter*> parameters_of(std::size_t unit) const {
    std::vector<const Parameter*> list;
    for (const Parameter& p : p_.parameters) {
      if (static_cast<std::size_t>(p.unit) == unit) list.push_back(&p);
    }
    std::stable_sort(list.begin(), list.end(),
                     [](const Parameter* a, const Parameter* b) { return a->offset < b->offset; });
    return list;
  }

  // A table that is also the head has two sums of gradients, which become one.
  void add_head_gradients() {
    for (std::size_t i = 0; i < p_.units.size(); ++i) {
      const Unit& unit = p_.units[i];
      if (unit.head_gradients < 0 || unit.part.count == 0) continue;
      Op op{.kind = Kind::kFold,
            .part = Part::kAllGroups,
            .in = {unit.in_own(unit.head_gradients, unit.part)},
            .out = {unit.in_own(unit.gradients, unit.part)},
            .adds = 1,
            .unit = static_cast<std::int32_t>(i)};
      b_.emit(std::move(op));
    }
  }

  // What each rank has added up is its own to square; the sums go to everyone.
  void find_norm() {
    std::vector<SumsPlace> places;
    std::int64_t all = 0;
    for (const Unit& unit : p_.units) {
      std::int64_t most = 0;
      for (const Range& part : unit.parts) most = std::max(most, part.count / block_);
      places.push_back({all, most});
      all += most;
    }
    const View own = b_.matrix("sums of squares", 1, all, Dtype::kF32, Storage::kScalars);
    for (std::size_t i = 0; i < p_.units.size(); ++i) {
      square(i, own.columns(places[i].first, places[i].count));
      gather_gradients(i);
    }
    View everyones = own;
    if (data_.ranks > 1) {
      everyones =
          b_.matrix("sums of squares by rank", data_.ranks, all, Dtype::kF32, Storage::kScalars);
      b_.wait(b_.issue(Kind::kAllGather, Axis::kData, Part::kAllGroups, own, everyones, -1));
    }
    b_.emit({.kind = Kind::kGradientNorm,
             .part = Part::kAllGroups,
             .in = in_order(places, everyones),
             .out = {p_.scalars}});
  }

  // Gaps between parameters hold no gradients, so each parameter is squared by itself.
  void square(std::size_t index, const View& sums) {
    const Unit& unit = p_.units[index];
    Op op{.kind = Kind::kNormSums,
          .part = Part::kAllGroups,
          .unit = static_cast<std::int32_t>(index)};
    for (const Parameter* p : parameters_of(index)) {
      const Range part = unit.part.common({p->offset, (p->rows + p->padding_rows) * p->cols});
      if (part.count == 0) continue;
      op.in.push_back(unit.in_own(unit.gradients, part));
      op.out.push_back(sums.columns((part.first - unit.part.first) / block_,
                                    (part.count + block_ - 1) / block_));
    }
    if (!op.in.empty()) b_.emit(std::move(op));
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
    for (std::size_t i = 0; i < p_.units.size(); ++i) {
      const Unit& unit = p_.units[i];
      if (!unit.whole_matrices) {
        // Rank after rank, and nothing of what pads the last parts: so a block is at the same place
        // in this order on any number of ranks.
        const View all = everyones.columns(places[i].first, places[i].count);
        const std::int64_t blocks = unit.used / block_;
        const std::int64_t rows = blocks / all.cols;
        if (rows > 0) add(all.rows_from(0, rows));
        if (rows * all.cols < blocks) {
          add(all.rows_from(rows, 1).columns(0, blocks - rows * all.cols));
        }
        continue;
      }
      for (const Parameter& p : p_.parameters) {
        if (static_cast<std::size_t>(p.unit) != i) continue;
        for (std::size_t rank = 0; rank < unit.parts.size(); ++rank) {
          const Range& part = unit.parts[rank];
          if (p.offset < part.first || p.offset >= part.end()) continue;
          add(everyones.rows_from(static_cast<std::int64_t>(rank), 1)
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
    waiting_[index] = b_.issue(
        Kind::kAllGather, Axis::kReplica, Part::kAllGroups, unit.in_own(unit.gradients, unit.part),
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
    for (const BufferId state : {unit.remainders, unit.first_moment, unit.second_moment}) {
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
    gathers_.push_back(b_.issue(Kind::kAllGather, axis, Part::kAllGroups,
                                whole.columns(unit.own.first, unit.own.count), whole,
                                static_cast<std::int32_t>(index)));
  }

  Builder& b_;
  Program& p_;
  Place data_;
  std::int64_t block_;
  std::map<std::size_t, Op> waiting_;
  std::vector<Op> gathers_;
};

}  // namespace

void add_losses(Builder& b) {
  Program& p = b.program();
  const Place data = p.choices.layout.data();
  b.enter(Phase::kOptimizer);
  const View own{p.sums.buffer, 0, 1, p.sums.elements(), p.sums.elements()};
  View everyones = own;
  if (data.ranks > 1) {
    everyones = b.matrix("sums by rank", data.ranks, own.cols, Dtype::kF32, Storage::kScalars);
    b.wait(b.issue(Kind::kAllGather, Axis::kData, Part::kLoss, own, everyones, -1));
  }
  b.emit({.kind = Kind::kStepSums,
          .part = Part::kLoss,
          .in = {everyones},
          .out = {p.scalars.columns(0, kSummedScalars)}});
}

void build_optimizer(Builder& b) {
  Optimizer(b).build();
}

}  // namespace assay::step
