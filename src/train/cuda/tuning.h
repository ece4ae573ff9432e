// Tuning: the fastest algorithm of each matrix product, and where they are known from: this
// process, a checkpoint, the cache file, or the tables that are compiled in (tuned/).
//
// An algorithm is 64 opaque bytes, valid for one version of cuBLASLt and chosen for one kind of
// GPU: its machine. As text a machine is a line, followed by a line for each product; the cache
// file and the tables have any number of machines.
#pragma once

#include <cublasLt.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay::train::cuda {

// Everything about a product that affects the speed of an algorithm.
enum class KeyPart : std::uint8_t {
  kRows,
  kCols,
  kInner,
  // Bit 0: a, bit 1: b; bit 2: it is one of a group; bit 3: known is whether our own kernel
  // computes the group, which is written as an algorithm.
  kTransposes,
  kAddend,  // 0: none, 1: the result itself, 2: another matrix
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
using ProductAlgorithms = std::map<ProductKey, cublasLtMatmulAlgo_t>;

class Tuning {
 public:
  // `machine`: GPU and library. A file that is missing or damaged counts as empty. Without a file
  // nothing is kept.
  void open(std::string file, std::string machine);
  // What other processes have saved since.
  void read_again();
  [[nodiscard]] const cublasLtMatmulAlgo_t* find(const ProductKey& key) const;
  void add(const ProductKey& key, const cublasLtMatmulAlgo_t& algorithm);
  // Adds what this process has found to the file: several may do that at the same time, and readers
  // never see a part of it. Once: if it fails, the next call has nothing to add.
  base::Result<void> save();

  // These algorithms as text, and such a text instead of what is known. False: it is of another
  // machine, or damaged, and nothing has changed.
  [[nodiscard]] std::string text_of(const ProductAlgorithms& algorithms) const;
  bool adopt(std::string_view text);
  [[nodiscard]] const std::string& machine() const { return machine_; }

 private:
  std::string file_;
  std::string machine_;
  ProductAlgorithms adopted_;  // of a checkpoint: before all others
  ProductAlgorithms known_;
  ProductAlgorithms found_;  // by this process since the last save()
};

}  // namespace assay::train::cuda
