#include "step/gradient_norm.h"

#include <algorithm>
#include <map>

#include "step/optimizer.h"

namespace assay::step {

void GradientNorm::measure_squares() {
  places_ = sums_places();
  std::int64_t most = 0;
  for (const SumsPlace& place : places_) most = std::max(most, place.first + place.count);
  squares_ = b_.matrix("sums of squares", 1, most, Dtype::kF32, Storage::kScalars);
}

void GradientNorm::square(std::size_t index) {
  const Unit& unit = p_.units[index];
  // If the last stage has the table as well, only the first stage's counts.
  if (unit.stage != p_.choices.layout.pipeline.rank) return;
  const SumsPlace& place = places_[model_unit(unit)];
  square(index, squares_.columns(place.first, place.count));
}

void GradientNorm::find_norm() {
  b_.emit({.kind = OpKind::kGradientNorm,
           .part = ModelPart::kAllGroups,
           .in = in_order(places_, gather(b_, "sums of squares", ModelPart::kAllGroups, squares_,
                                          {Axis::kData, Axis::kTensor, Axis::kPipeline})),
           .out = {p_.scalars}});
}

// For each unit of the model, its position in the vector of a rank of its stage.
std::vector<GradientNorm::SumsPlace> GradientNorm::sums_places() const {
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

std::size_t GradientNorm::model_unit(const Unit& unit) const {
  const auto found =
      std::ranges::find(p_.model_units, unit.name, [](const Unit& u) { return u.name; });
  return static_cast<std::size_t>(found - p_.model_units.begin());
}

// Gaps between parameters hold no gradients, so each parameter is squared separately.
void GradientNorm::square(std::size_t index, const View& sums) {
  const Unit& unit = p_.units[index];
  Op op{.kind = OpKind::kNormSums,
        .part = ModelPart::kAllGroups,
        .unit = static_cast<std::int32_t>(index)};
  for (const Parameter* p : parameters_of_unit(p_, index)) {
    const Range part = unit.part.common({p->offset, (p->rows + p->padding_rows) * p->cols});
    if (part.count == 0 || p->rule == UpdateRule::kBalanced) continue;
    op.in.push_back(unit.in_own(unit.gradients, part));
    op.out.push_back(
        sums.columns((part.first - unit.part.first) / block_, (part.count + block_ - 1) / block_));
  }
  if (!op.in.empty()) b_.emit(std::move(op));
}

// One tensor-parallel rank's part of a unit; what all of them have counts only on the first.
std::vector<View> GradientNorm::of_tensor_rank(std::size_t unit, std::int64_t rank,
                                               const SumsPlace& place, const View& rows) const {
  std::vector<View> list;
  const Unit& of = p_.model_units[unit];
  const std::vector<Range>& parts = of.parts;
  for (const Parameter& p : p_.model_parameters) {
    if (static_cast<std::size_t>(p.unit) != unit || (rank > 0 && !p.slice.cut)) continue;
    for (std::size_t i = 0; i < parts.size() * copies_of(of); ++i) {
      const Range& whole = parts[i % parts.size()];
      const Range part = whole.common({p.offset, (p.rows + p.padding_rows) * p.cols});
      if (part.count == 0) continue;
      list.push_back(rows.rows_from(data_rank(of, i), 1)
                         .columns(place.first + (part.first - whole.first) / block_,
                                  (part.count + block_ - 1) / block_));
    }
  }
  return list;
}

// A unit of experts exists once for each expert-parallel rank, each with its own parts.
std::size_t GradientNorm::copies_of(const Unit& unit) const {
  return unit.experts ? static_cast<std::size_t>(p_.choices.layout.expert.ranks) : 1;
}

// The data rank that sums the i-th part, starting with the parts of the first rank's experts.
std::int64_t GradientNorm::data_rank(const Unit& unit, std::size_t i) const {
  const auto part = static_cast<std::int64_t>(i % unit.parts.size());
  if (!unit.experts) return part;
  const auto expert = static_cast<std::int64_t>(i / unit.parts.size());
  const Layout& layout = p_.choices.layout;
  const std::int64_t replicas = layout.along(Axis::kReplica).ranks;
  return (part / replicas * layout.expert.ranks + expert) * replicas + part % replicas;
}

// All blocks in the order of the model's parameters, whichever rank has summed them.
std::vector<View> GradientNorm::in_order(const std::vector<SumsPlace>& places,
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
    if (unit.experts) {
      for (const View& view : of_tensor_rank(i, 0, places[i], of_stage)) add(view);
      continue;
    }
    if (!unit.whole_matrices) {
      // Rank after rank, without the padding of the last parts: so a block has the same position in
      // this order for any number of ranks.
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

}  // namespace assay::step
