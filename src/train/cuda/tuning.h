// Tuning: the fastest algorithm of each matrix product, and the file that caches them. An algorithm
// is 64 opaque bytes, valid for one version of cuBLASLt and tuned for one kind of GPU; both are in
// the file's first line, and a file of another machine is discarded.
#pragma once

#include <cublasLt.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"

namespace assay::train::cuda {

// Everything about a product that affects the speed of an algorithm.
enum class KeyPart : std::uint8_t {
  kRows,
  kCols,
  kInner,
  kTransposes,  // bit 0: a, bit 1: b; bit 2: it is one of a group
  kAddend,      // 0: none, 1: the result itself, 2: another matrix
  kBias,
  kFp8,
  kFp32Result,
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
  // `machine`: GPU, driver and library. A missing file, or one of another machine, counts as empty.
  base::Result<void> open(std::string file, std::string machine);
  // What other processes have saved since.
  void read_again();
  [[nodiscard]] const cublasLtMatmulAlgo_t* find(const ProductKey& key) const;
  void add(const ProductKey& key, const cublasLtMatmulAlgo_t& algorithm);
  // Written to a temporary file of this process and renamed, so that readers never see a partial
  // one.
  base::Result<void> save();

 private:
  bool parse(const std::string& line);

  std::string file_;
  std::string machine_;
  std::map<ProductKey, cublasLtMatmulAlgo_t> algorithms_;
  bool changed_ = false;
};

}  // namespace assay::train::cuda
