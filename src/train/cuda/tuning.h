// Tuning: the fastest known algorithm of each matrix product. Sources are this process, a
// checkpoint, the cache file, and the compiled-in tables (tuned/).
//
// An algorithm is 64 opaque bytes, valid for one "machine": a version of cuBLASLt and a GPU model.
// The text format has a line for the machine, followed by a line for each product; the cache file
// and the tables have any number of machines.
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
  // Bit 0: a; bit 1: b; bit 2: one of a group; bit 3: the entry says, encoded as an algorithm,
  // whether our own kernel computes the group.
  kTransposes,
  kAddend,  // 0: none, 1: the result itself, 2: another matrix
  kBias,
  kFp8,
  kFp32Result,
  kStrideA,
  kStrideB,
  kStrideAddend,
  kStrideC,
  kAlignment,  // of a, b, addend, c: 8 bits each, the exponent of a power of two
  kParts,
};
using ProductKey = std::array<std::int64_t, static_cast<std::size_t>(KeyPart::kParts)>;
using ProductAlgorithms = std::map<ProductKey, cublasLtMatmulAlgo_t>;

class Tuning {
 public:
  // `machine`: GPU and library. A missing or damaged file counts as empty. If `file` is empty,
  // nothing is saved.
  void open(std::string file, std::string machine);
  // Reads what other processes have saved since.
  void read_again();
  [[nodiscard]] const cublasLtMatmulAlgo_t* find(const ProductKey& key) const;
  void add(const ProductKey& key, const cublasLtMatmulAlgo_t& algorithm);
  // Merges what this process has found into the file. Concurrent saves are safe, and readers never
  // see a partial file. There is no retry: if it fails, the next call has nothing to add.
  base::Result<void> save();

  // text_of() formats these algorithms; adopt() replaces what is known by such a text. False: the
  // text is damaged or for another machine, and nothing has changed.
  [[nodiscard]] std::string text_of(const ProductAlgorithms& algorithms) const;
  bool adopt(std::string_view text);
  [[nodiscard]] const std::string& machine() const { return machine_; }

 private:
  std::string file_;
  std::string machine_;
  ProductAlgorithms adopted_;  // from a checkpoint; takes precedence
  ProductAlgorithms known_;
  ProductAlgorithms found_;  // by this process since the last save()
};

}  // namespace assay::train::cuda
