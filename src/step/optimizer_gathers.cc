#include "step/optimizer_gathers.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::step {

std::vector<const Parameter*> parameters_of_unit(const Program& program, std::size_t unit) {
  std::vector<const Parameter*> list;
  for (const Parameter& p : program.parameters) {
    if (static_cast<std::size_t>(p.unit) == unit) list.push_back(&p);
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const Parameter* a, const Parameter* b) { return a->offset < b->offset; });
  return list;
}

Op gather_along(Builder& b, Axis axis, Part part, const View& own, const View& all,
                std::int32_t unit) {
  return b.issue({.kind = Kind::kAllGather,
                  .part = part,
                  .in = {own},
                  .out = {all},
                  .axis = axis,
                  .unit = unit});
}

Gathering begin_gather(Builder& b, const char* name, Part part, const View& own, Axis axis) {
  const Place place = b.program().choices.layout.along(axis);
  if (place.ranks == 1) return {own, std::nullopt};
  const View all = b.matrix(fmt::format("{} by {}", name, to_text(axis)), own.rows * place.ranks,
                            own.cols, Dtype::kF32, Storage::kScalars);
  return {all, gather_along(b, axis, part, own, all, -1)};
}

View end_gather(Builder& b, const Gathering& gathering) {
  if (gathering.issued) b.wait(*gathering.issued);
  return gathering.all;
}

View gather(Builder& b, const char* name, Part part, const View& own,
            std::initializer_list<Axis> axes) {
  View everyones = own;
  for (const Axis axis : axes) {
    everyones = end_gather(b, begin_gather(b, name, part, everyones, axis));
  }
  return everyones;
}

}  // namespace assay::step
