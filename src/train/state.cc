#include "train/state.h"

namespace assay::train {
namespace {

// A whole tensor as a matrix; a part of one as a row, since it may start anywhere.
step::View view_of(const step::Parameter& p, const step::Range& own, step::BufferId buffer,
                   std::int64_t offset) {
  if (own.count == p.elements()) return {buffer, offset, p.rows, p.cols, p.cols};
  return {buffer, offset, 1, own.count, own.count};
}

// The elements of a parameter that lie in a range of its unit.
step::Range part_of(const step::Parameter& p, const step::Range& range) {
  const step::Range common = range.common({p.offset, p.elements()});
  return {common.first - p.offset, common.count};
}

StateTensor whole_tensor(const step::Program& program, const step::Parameter& p,
                         const std::string& name, step::BufferId buffer) {
  const step::Range all{0, p.elements()};
  return {.name = name,
          .type = program.buffers[static_cast<std::size_t>(buffer)].type,
          .rows = p.rows,
          .cols = p.cols,
          .vector = p.is_vector(),
          .held = {{0, all}},
          .own = all,
          .view = view_of(p, all, buffer, p.offset)};
}

// In a buffer that holds only what this rank keeps of its unit.
StateTensor kept_tensor(const step::Program& program, const step::Parameter& p,
                        const std::string& name, step::BufferId buffer) {
  StateTensor tensor = whole_tensor(program, p, name, buffer);
  const step::Unit& unit = program.unit_of(p);
  tensor.own = part_of(p, unit.own);
  tensor.view = view_of(p, tensor.own, buffer, p.offset + tensor.own.first - unit.own.first);
  if (unit.own.count == unit.elements) return tensor;
  tensor.sharded = true;
  tensor.held.clear();
  // Of replicas, which have the same, the first.
  const step::Layout& layout = program.choices.layout;
  const std::vector<std::int64_t> members = layout.members(step::Axis::kData);
  const std::int64_t apart = unit.whole_matrices ? 1 : layout.replica.ranks;
  for (std::int64_t rank = 0; rank < layout.data().ranks; rank += apart) {
    step::Range range = unit.parts[static_cast<std::size_t>(rank)];
    range.count *= apart;
    const step::Range part = part_of(p, range);
    if (part.count > 0) {
      tensor.held.push_back({members[static_cast<std::size_t>(rank)], part});
    }
  }
  return tensor;
}

checkpoint::Dtype file_type(step::Dtype type) {
  switch (type) {
    case step::Dtype::kBf16:
      return checkpoint::Dtype::kBf16;
    case step::Dtype::kU16:
      return checkpoint::Dtype::kU16;
    case step::Dtype::kI32:
      return checkpoint::Dtype::kI32;
    case step::Dtype::kFp8:  // not used for state
    case step::Dtype::kFp16:
    case step::Dtype::kF32:
      break;
  }
  return checkpoint::Dtype::kF32;
}

}  // namespace

StateTensor weight_tensor(const step::Program& program, const step::Parameter& p) {
  const bool parts = program.choices.layout.gathers_weights();
  return (parts ? kept_tensor : whole_tensor)(program, p, p.name, program.unit_of(p).weights);
}

std::optional<StateTensor> remainder_tensor(const step::Program& program,
                                            const step::Parameter& p) {
  const step::BufferId buffer = program.unit_of(p).remainders;
  if (buffer < 0) return std::nullopt;
  return kept_tensor(program, p, "remainder/" + p.name, buffer);
}

std::vector<StateTensor> state_tensors(const step::Program& program, StateKind kind) {
  std::vector<StateTensor> list;
  for (const step::Parameter& p : program.parameters) {
    if (kind == StateKind::kWeights) {
      list.push_back(weight_tensor(program, p));
      continue;
    }
    const step::Unit& unit = program.unit_of(p);
    if (auto remainder = remainder_tensor(program, p)) list.push_back(*std::move(remainder));
    for (const auto& [prefix, buffer] :
         {std::pair{"first_moment/", unit.first_moment}, {"second_moment/", unit.second_moment}}) {
      if (buffer >= 0) list.push_back(kept_tensor(program, p, prefix + p.name, buffer));
    }
  }
  return list;
}

checkpoint::TensorInfo file_info(const StateTensor& tensor) {
  checkpoint::TensorInfo info{tensor.name, file_type(tensor.type), {tensor.rows, tensor.cols}};
  if (tensor.vector) info.shape = {tensor.cols};
  return info;
}

}  // namespace assay::train
