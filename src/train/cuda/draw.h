// draw.cu: initial weights, drawn on the device. The bits are those of train/init.h: elements whose
// rounding two mathematical libraries could see differently (train/normal_draw.h) are listed
// instead, and put() writes what the host found.
#pragma once

#include <cstdint>
#include <span>

#include "train/cuda/device.h"

namespace assay::train::cuda {

// Runs of a parameter's elements, which lie one after the other in memory.
struct DrawnRuns {
  std::int64_t first = 0;  // of the parameter
  std::int64_t count = 0;
  std::int64_t run = 0;    // elements side by side
  std::int64_t apart = 0;  // from one run's first element to the next one's

  // Which element of the parameter the i-th of these is.
  [[nodiscard]] std::int64_t element(std::int64_t i) const {
    return first + i / run * apart + i % run;
  }
};

struct NormalNumbers {
  std::uint64_t seed = 0;
  std::uint64_t name = 0;  // draw_name()
  double deviation = 0;
};

// bf16 weights; `low` may be null, and has the low halves of elements [low_first, low_first +
// low_count).
struct DrawnTo {
  std::uint16_t* high = nullptr;
  std::uint16_t* low = nullptr;
  std::int64_t low_first = 0;
  std::int64_t low_count = 0;
};

// In device memory, zeroed before.
struct UncertainList {
  std::uint64_t* count = nullptr;  // may become more than `most`: then not all of them are listed
  std::int64_t* elements = nullptr;
  std::uint64_t most = 0;
};

void draw(Device& device, const NormalNumbers& numbers, const DrawnRuns& runs, const DrawnTo& to,
          const UncertainList& uncertain);

// An element of a draw, as an index from its first on, and its value.
struct Known {
  std::int64_t element = 0;
  float value = 0;
};
// `list` is in device memory.
void put(Device& device, const Known* list, std::int64_t count, const DrawnTo& to);

}  // namespace assay::train::cuda
