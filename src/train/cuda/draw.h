// draw.cu: initial weights, drawn on the device, with the bits of train/init.h. Elements that two
// mathematical libraries might round differently (train/normal_draw.h) are listed instead; the host
// computes those, and put() writes them.
#pragma once

#include <cstdint>
#include <span>

#include "train/cuda/device.h"

namespace assay::train::cuda {

// Runs of a parameter's elements; in memory they are contiguous.
struct DrawnRuns {
  std::int64_t first = 0;  // index within the parameter
  std::int64_t count = 0;
  std::int64_t run = 0;    // contiguous elements
  std::int64_t apart = 0;  // distance between the starts of two runs

  // The index within the parameter of the i-th of these elements.
  [[nodiscard]] std::int64_t element(std::int64_t i) const {
    return first + i / run * apart + i % run;
  }
};

struct NormalNumbers {
  std::uint64_t seed = 0;
  std::uint64_t name = 0;  // draw_name()
  double deviation = 0;
};

// Destination: bf16 weights and, if `low` is not null, the low halves of elements [low_first,
// low_first + low_count).
struct DrawnTo {
  std::uint16_t* high = nullptr;
  std::uint16_t* low = nullptr;
  std::int64_t low_first = 0;
  std::int64_t low_count = 0;
};

// In device memory, zeroed by the caller.
struct UncertainList {
  std::uint64_t* count = nullptr;  // if it exceeds `most`, only some of the elements are listed
  std::int64_t* elements = nullptr;
  std::uint64_t most = 0;
};

void draw(Device& device, const NormalNumbers& numbers, const DrawnRuns& runs, const DrawnTo& to,
          const UncertainList& uncertain);

// An element, as an index into the draw, and its value.
struct Known {
  std::int64_t element = 0;
  float value = 0;
};
// `list` is in device memory.
void put(Device& device, const Known* list, std::int64_t count, const DrawnTo& to);

}  // namespace assay::train::cuda
