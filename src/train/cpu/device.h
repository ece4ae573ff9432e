// Device: what every CPU kernel is given (threads and the log of executed ops), and Matrix, a view
// whose address is known.
#pragma once

#include <cstdint>

#include "train/executed.h"
#include "train/threads.h"

namespace assay::train::cpu {

struct Matrix {
  float* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;

  [[nodiscard]] float* row(std::int64_t i) const { return data + i * stride; }
  [[nodiscard]] bool empty() const { return data == nullptr; }
};

class Device : public Threads, public OpRecorder {
 public:
  using Threads::Threads;
};

}  // namespace assay::train::cpu
