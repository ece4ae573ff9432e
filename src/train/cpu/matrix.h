// Matrix and Tokens: views whose place in memory is known.
#pragma once

#include <cstdint>

namespace assay::train::cpu {

struct Matrix {
  float* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;

  [[nodiscard]] float* row(std::int64_t i) const { return data + i * stride; }
  [[nodiscard]] bool empty() const { return data == nullptr; }
};

struct Tokens {
  const std::int32_t* data = nullptr;
  std::int64_t count = 0;

  std::int32_t operator[](std::int64_t i) const { return data[i]; }
};

struct Shape {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  bool there = false;

  Shape(const Matrix& m) : rows(m.rows), cols(m.cols), there(!m.empty()) {}  // NOLINT: as which it
  Shape(const Tokens& t) : rows(t.count), cols(1), there(true) {}            // NOLINT: is passed
};

}  // namespace assay::train::cpu
