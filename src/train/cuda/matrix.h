// Matrix: a view resolved to an address in device memory. Elements are bf16 unless noted.
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

}  // namespace assay::train::cuda
