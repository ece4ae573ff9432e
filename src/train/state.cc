#include "train/state.h"

#include <algorithm>

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

// This rank's unit for one of the model's units, with its buffers; null if it has none of it.
const step::Unit* own_unit(const step::Program& program, const step::Unit& unit) {
  const auto found = std::ranges::find(program.units, unit.name, &step::Unit::name);
  return found == program.units.end() ? nullptr : &*found;
}

// `buffer` of a unit; `whole`: every rank of the stage keeps all of it.
StateTensor tensor_of(const step::Program& program, const step::Parameter& p, const char* prefix,
                      step::BufferId step::Unit::*buffer, step::Dtype type, bool whole) {
  const step::Unit& unit = program.model_units[static_cast<std::size_t>(p.unit)];
  const step::Layout& layout = program.choices.layout;
  StateTensor tensor{.name = prefix + p.name,
                     .type = type,
                     .rows = p.whole_rows(),
                     .cols = p.whole_cols(),
                     .vector = p.is_vector(),
                     .slice = p.slice};
  const step::Unit* own = own_unit(program, unit);
  if (own == nullptr) return tensor;
  const step::Range kept = whole ? step::Range{0, unit.elements} : unit.own;
  tensor.own = part_of(p, kept);
  tensor.view = view_of(p, tensor.own, own->*buffer, p.offset + tensor.own.first - kept.first);
  // A data rank saves the part that it sums, so that all save the same amount: every rank that
  // keeps more of the state also has that part. A table that two stages have is saved by the first
  // stage, and what all tensor-parallel ranks have by the first of them.
  const bool saves = unit.stage == layout.pipeline.rank && (p.slice.cut || layout.tensor.rank == 0);
  if (saves) tensor.saved = part_of(p, unit.part);
  return tensor;
}

checkpoint::TensorDtype file_type(step::Dtype type) {
  switch (type) {
    case step::Dtype::kBf16:
      return checkpoint::TensorDtype::kBf16;
    case step::Dtype::kU16:
      return checkpoint::TensorDtype::kU16;
    case step::Dtype::kI32:
      return checkpoint::TensorDtype::kI32;
    case step::Dtype::kFp8:  // not used for state
    case step::Dtype::kFp16:
    case step::Dtype::kF32:
      break;
  }
  return checkpoint::TensorDtype::kF32;
}

}  // namespace

StateTensor weight_tensor(const step::Program& program, const step::Parameter& p) {
  const bool whole = !program.model_units[static_cast<std::size_t>(p.unit)].gathered;
  return tensor_of(program, p, "", &step::Unit::weights, program.choices.numerics.weights, whole);
}

std::optional<StateTensor> remainder_tensor(const step::Program& program,
                                            const step::Parameter& p) {
  if (!program.choices.numerics.remainders || program.choices.purpose != step::Purpose::kTrain) {
    return std::nullopt;
  }
  return tensor_of(program, p, "remainder/", &step::Unit::remainders, step::Dtype::kU16, false);
}

std::vector<StateTensor> state_tensors(const step::Program& program, StateKind kind) {
  std::vector<StateTensor> list;
  const step::Dtype moments = program.choices.numerics.moments;
  for (const step::Parameter& p : program.model_parameters) {
    if (kind == StateKind::kWeights) {
      list.push_back(weight_tensor(program, p));
      continue;
    }
    if (program.choices.purpose != step::Purpose::kTrain) continue;
    if (auto remainder = remainder_tensor(program, p)) list.push_back(*std::move(remainder));
    list.push_back(
        tensor_of(program, p, "first_moment/", &step::Unit::first_moment, moments, false));
    if (p.rule == step::UpdateRule::kMuon) continue;
    list.push_back(
        tensor_of(program, p, "second_moment/", &step::Unit::second_moment, moments, false));
  }
  return list;
}

step::View StateTensor::view_of(const step::Range& elements) const {
  if (elements == own) return view;
  return {view.buffer, view.offset + elements.first - own.first, 1, elements.count, elements.count};
}

std::vector<checkpoint::ElementRange> StateTensor::pieces(const step::Range& elements) const {
  std::vector<checkpoint::ElementRange> list;
  for (const step::Slice::Runs& runs : slice.runs_of(elements)) {
    if (runs.run == runs.count) {
      list.push_back({runs.first, runs.count});
    } else {
      list.push_back({runs.first, runs.count, runs.run, runs.apart});
    }
  }
  return list;
}

std::int64_t saved_bytes(const step::Program& program) {
  std::int64_t bytes = 0;
  for (const StateKind kind : {StateKind::kWeights, StateKind::kOptimizer}) {
    for (const StateTensor& tensor : state_tensors(program, kind)) {
      bytes += tensor.saved.count * step::bytes_of(tensor.type);
    }
  }
  return bytes;
}

checkpoint::TensorInfo file_info(const StateTensor& tensor) {
  checkpoint::TensorInfo info{tensor.name, file_type(tensor.type), {tensor.rows, tensor.cols}};
  if (tensor.vector) info.shape = {tensor.cols};
  return info;
}

}  // namespace assay::train
