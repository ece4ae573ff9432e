// Tuning: the fastest algorithm of each matrix product, and the file they are kept in. An algorithm
// is 64 opaque bytes that mean something to one version of cuBLASLt only, and its speed something
// on one kind of GPU, so both stand in the file's first line, and a file of others is begun anew.
#pragma once

#include <cublasLt.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"

namespace assay::train::cuda {

// Everything about a product that decides how fast an algorithm is, as cuBLASLt sees it.
enum class KeyPart : std::uint8_t {
  kRows,
  kCols,
  kInner,
  kTransposes,  // bit 0: a, bit 1: b
  kAddend,      // 0: none, 1: the result itself, 2: another matrix
  kBias,
  kFp8,
  kStrideA,
  kStrideB,
  kStrideAddend,
  kStrideC,
  kAlignment,  // of a, b, addend, c: 8 bits of a power of two each
  kParts,
};
using ProductKey = std::array<std::int64_t, static_cast<std::size_t>(KeyPart::kParts)>;

class Tuning {
 public:
  // `machine`: GPU, driver and library. A file that is not there, or of another machine, is empty.
  base::Result<void> open(std::string file, std::string machine);
  [[nodiscard]] const cublasLtMatmulAlgo_t* find(const ProductKey& key) const;
  void add(const ProductKey& key, const cublasLtMatmulAlgo_t& algorithm);
  // Written beside and renamed, so that a reader never sees half of it.
  base::Result<void> save();

 private:
  bool parse(const std::string& line);

  std::string file_;
  std::string machine_;
  std::map<ProductKey, cublasLtMatmulAlgo_t> algorithms_;
  bool changed_ = false;
};

}  // namespace assay::train::cuda
