#include "train/state.h"

namespace assay::train {

std::vector<StateTensor> state_tensors(const step::Program& program, StateKind kind) {
  std::vector<StateTensor> list;
  const auto add = [&](const char* prefix, step::BufferId buffer, const step::Parameter& p) {
    if (buffer < 0) return;
    list.push_back({.name = prefix + p.name,
                    .type = program.buffers[static_cast<std::size_t>(buffer)].type,
                    .view = {buffer, p.offset, p.rows, p.cols, p.cols},
                    .vector = p.init != step::Init::kNormal});
  };
  for (const step::Parameter& p : program.parameters) {
    const step::GroupBuffers& group = program.of(p.group);
    if (kind == StateKind::kWeights) {
      add("", group.weights, p);
      continue;
    }
    add("remainder/", group.remainders, p);
    add("first_moment/", group.first_moment, p);
    add("second_moment/", group.second_moment, p);
  }
  return list;
}

}  // namespace assay::train
