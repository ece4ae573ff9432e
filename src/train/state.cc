#include "train/state.h"

namespace assay::train {
namespace {

// A whole tensor as a matrix; a part of one as a row, since it may start anywhere.
step::View view_of(const step::Parameter& p, const step::Range& own, step::BufferId buffer,
                   std::int64_t offset) {
  if (own.count == p.elements()) return {buffer, offset, p.rows, p.cols, p.cols};
  return {buffer, offset, 1, own.count, own.count};
}

StateTensor whole_tensor(const step::Program& program, const step::Parameter& p,
                         const std::string& name, step::BufferId buffer) {
  const step::Range all{0, p.elements()};
  return {.name = name,
          .type = program.buffers[static_cast<std::size_t>(buffer)].type,
          .rows = p.rows,
          .cols = p.cols,
          .vector = p.init != step::Init::kNormal,
          .held = std::vector(static_cast<std::size_t>(program.choices.layout.data.ranks), all),
          .own = all,
          .view = view_of(p, all, buffer, p.offset)};
}

// In a buffer that holds only this rank's range of the group.
StateTensor sharded_tensor(const step::Program& program, const step::Parameter& p,
                           const std::string& name, step::BufferId buffer) {
  StateTensor tensor = whole_tensor(program, p, name, buffer);
  const step::Place place = program.choices.layout.data;
  for (std::int64_t rank = 0; rank < place.ranks; ++rank) {
    tensor.held[static_cast<std::size_t>(rank)] = program.part_of(p, rank);
  }
  tensor.sharded = place.ranks > 1;
  tensor.own = program.part_of(p, place.rank);
  tensor.view =
      view_of(p, tensor.own, buffer, p.offset + tensor.own.first - program.of(p.group).own.first);
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

std::vector<StateTensor> state_tensors(const step::Program& program, StateKind kind) {
  std::vector<StateTensor> list;
  for (const step::Parameter& p : program.parameters) {
    const step::GroupBuffers& group = program.of(p.group);
    if (kind == StateKind::kWeights) {
      list.push_back(whole_tensor(program, p, p.name, group.weights));
      continue;
    }
    for (const auto& [prefix, buffer] : {std::pair{"remainder/", group.remainders},
                                         {"first_moment/", group.first_moment},
                                         {"second_moment/", group.second_moment}}) {
      if (buffer >= 0) list.push_back(sharded_tensor(program, p, prefix + p.name, buffer));
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
