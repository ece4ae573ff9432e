// Before the first block of a chunk: what it reads, and the tables that tokens and positions are
// looked up in.
#pragma once

#include <cstdint>
#include <vector>

#include "step/builder.h"

namespace assay::step {

// Tokens are read by the chunk that embeds them, targets by the one that computes the loss, and
// document starts by every chunk if there is a document mask.
struct Inputs {
  View tokens;
  View targets;
  View documents;
};
struct InputPlace {
  std::int32_t chunk = 0;
  std::int32_t slot = 0;
  bool first = false;  // the chunk is the model's first
  bool last = false;
};
Inputs read_inputs(Builder& b, const InputPlace& place);
void embed(Builder& b, const View& tokens, const View& x);
void table_gradients(Builder& b, const View& tokens, const View& dx);
// The units whose weights embed() uses.
std::vector<std::int32_t> units_of_tables(const Builder& b);

}  // namespace assay::step
