// Compares two checkpoints, regardless of the ranks and files they were written by: the training
// state key by key, and every tensor element by element, bit for bit. Reads in pieces, so memory
// use does not grow with the size of the checkpoints, and verifies what it reads: damage is an
// error and not a difference.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "train/checkpoint/checkpoint.h"

namespace assay::checkpoint {

// A value of the manifest by its keys: "step", "data_cursor.windows", "extra.batch.sequences".
// Null: there is none. Of texts with several lines, the lines that the other does not have.
struct StateDifference {
  std::string key;
  base::Json a;
  base::Json b;
};
std::vector<StateDifference> diff_state(const TrainingState& a, const TrainingState& b);

enum class TensorRelation { kOnlyInA, kOnlyInB, kOtherShape, kOtherValues };

struct TensorDifference {
  std::string part;
  std::string name;
  TensorRelation relation = TensorRelation::kOtherValues;
  TensorInfo a;  // if present there
  TensorInfo b;
  // For kOtherValues:
  std::int64_t elements = 0;
  std::int64_t differing = 0;  // elements whose bits differ
  std::int64_t first = 0;      // index of the first of them
  double first_a = 0;
  double first_b = 0;
  double largest = 0;     // largest absolute difference between numbers
  std::int64_t nans = 0;  // differing elements that are NaN on either side
};

struct Difference {
  std::vector<StateDifference> state;
  std::vector<StateDifference> notes;  // of DiffOptions::notes
  std::vector<TensorDifference> tensors;
  std::int64_t compared_tensors = 0;  // tensors that both have
  std::int64_t compared_bytes = 0;

  [[nodiscard]] bool equal() const { return state.empty() && tensors.empty(); }
};

struct DiffOptions {
  // Keys whose values describe how the state was computed and are not part of it: differences in
  // them, or below them, are listed separately and do not count.
  std::vector<std::string> notes = {};
  // Called with the number of bytes just compared.
  std::function<void(std::int64_t)> progress = {};
};
base::Result<Difference> diff(const Checkpoint& a, const Checkpoint& b,
                              const DiffOptions& options = {});

}  // namespace assay::checkpoint
