// ProductRace: which of cuBLASLt's algorithms makes a product fastest, found by making it.
//
// The library's own guesses are the field. Of a product large enough to take the card to the limit
// of its power, the best of them also run with other clusters of blocks and in other orders of
// tiles, which the library knows but does not offer; what those give is compared with what a guess
// gives. What is quickest in a burst is not what is quickest when the card is hot, where training
// happens, so the best few run again, in turns, each for long enough to get there.
#pragma once

#include <cublasLt.h>

#include <functional>
#include <span>
#include <vector>

#include "train/cuda/device.h"
#include "train/cuda/matrix.h"

namespace assay::train::cuda {

class ProductRace {
 public:
  using Algorithm = cublasLtMatmulAlgo_t;
  // Makes the product once, with what it adds to or without.
  using Launch = std::function<bool(const Algorithm& algorithm, bool adds)>;
  // Whether the library can make the product with it, and in our workspace.
  using Check = std::function<bool(const Algorithm& algorithm)>;

  ProductRace(Device& device, Matrix result, Launch launch, Check check);
  ProductRace(const ProductRace&) = delete;
  ProductRace& operator=(const ProductRace&) = delete;
  ~ProductRace();

  Algorithm winner(std::span<const cublasLtMatmulHeuristicResult_t> guesses, double flops);

 private:
  struct Runner {
    float ms = 0;
    Algorithm algorithm{};
  };
  float time(const Algorithm& algorithm, int count);
  void add(const Algorithm& algorithm);
  void add_neighbours(const Algorithm& of);
  [[nodiscard]] bool gives_the_same(const Algorithm& algorithm, const Algorithm& as);
  Algorithm final_round();

  Device& device_;
  Matrix result_;
  Launch launch_;
  Check check_;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
  std::vector<Runner> field_;
};

}  // namespace assay::train::cuda
