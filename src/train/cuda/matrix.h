// Matrix and Tokens: views whose place in device memory is known. Elements are bf16 unless said.
#pragma once

#include <cstdint>

namespace assay::train::cuda {

struct Matrix {
  void* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;

  [[nodiscard]] bool empty() const { return data == nullptr; }
  template <class T>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(data);
  }
};

struct Tokens {
  const std::int32_t* data = nullptr;
  std::int64_t count = 0;
};

struct Shape {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  bool there = false;

  Shape(const Matrix& m) : rows(m.rows), cols(m.cols), there(!m.empty()) {}  // NOLINT: as which it
  Shape(const Tokens& t) : rows(t.count), cols(1), there(true) {}            // NOLINT: is passed
};

}  // namespace assay::train::cuda
