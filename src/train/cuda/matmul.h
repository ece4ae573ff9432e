// Matmul: matrix products by cuBLASLt. For each distinct product whose algorithm is not known
// (tuning.h), the candidates of the library's heuristic are timed once on the device, and the
// fastest is used from then on.
#pragma once

#include <cublasLt.h>
#include <span>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "train/cuda/device.h"
#include "train/cuda/product.h"
#include "train/cuda/tuning.h"

namespace assay::train::cuda {

// Where a product is computed: products on different lanes may run concurrently.
struct Lane {
  cudaStream_t stream = nullptr;
  void* workspace = nullptr;  // as large as device.workspace.products
};

class Matmul {
 public:
  Matmul() = default;
  Matmul(const Matmul&) = delete;
  Matmul& operator=(const Matmul&) = delete;
  ~Matmul();

  // `thorough`: times every product even if its algorithm is known, and long enough to reach the
  // GPU's power limit, which takes seconds per product.
  base::Result<void> open(std::string tuning_file, bool thorough = false);
  // Finds the fastest algorithm unless it is known. Overwrites the product's result.
  void tune(Device& device, const Product& product);
  // A product that was not tuned is tuned now, provided that leaves its operands unchanged.
  void multiply(Device& device, const Product& product);
  // For grouped products, which are timed together: the candidates of cuBLASLt's heuristic, best
  // guess first; or, with `is_known` set, only the algorithm that is already known.
  std::vector<cublasLtMatmulAlgo_t> suggestions(Device& device, const Product& product,
                                                bool& is_known);
  // The algorithm that multiply_like() uses from now on and, if `remembers`, in later runs.
  void use(const Product& tuned, const cublasLtMatmulAlgo_t& algorithm, bool remembers);
  // The algorithm known before any timing; or null.
  [[nodiscard]] const cublasLtMatmulAlgo_t* known(const Product& product) const;
  // The algorithm given to use(), or adopted from a checkpoint since; or null.
  [[nodiscard]] const cublasLtMatmulAlgo_t* used(const Product& tuned) const;
  // A product that differs from `tuned`, for which use() was called, only in the number of an
  // expert's rows. Uses the same algorithm or, where cuBLASLt refuses it, the heuristic's first
  // choice.
  void multiply_like(Device& device, const Product& tuned, const Product& product, Lane lane);
  // Writes the results to the tuning file.
  base::Result<void> save() { return tuning_.save(); }
  void read_again() { tuning_.read_again(); }
  // The algorithms of all products so far, as text; adopt() replaces them by such a text
  // (tuning.h).
  [[nodiscard]] std::string algorithms() const;
  bool adopt(const std::string& text);
  [[nodiscard]] const std::string& machine() const { return tuning_.machine(); }
  [[nodiscard]] bool is_thorough() const { return thorough_; }
  // Number of products timed since open().
  [[nodiscard]] int timed() const { return timed_; }

 private:
  struct Plan {
    cublasLtMatmulDesc_t operation = nullptr;
    cublasLtMatrixLayout_t a = nullptr;
    cublasLtMatrixLayout_t b = nullptr;
    cublasLtMatrixLayout_t addend = nullptr;
    cublasLtMatrixLayout_t c = nullptr;
    cublasLtMatmulAlgo_t algorithm{};
  };
  // A plan whose layouts multiply_like() changes from call to call. Heuristic choices are cached by
  // the shape of a, and the cache is cleared when it grows large; a choice depends only on its
  // product, so results do not depend on earlier calls.
  struct ChangingPlan {
    Plan plan;
    std::map<std::pair<std::int64_t, std::int64_t>, cublasLtMatmulAlgo_t> guesses;
  };
  static Plan make_plan(const Product& product);
  static void point_at_operands(const Plan& plan, const Product& product);
  static void destroy(const Plan& plan);
  Plan* plan_of(Device& device, const Product& product, bool may_time);
  // Candidates of the library's heuristic, best guess first.
  std::vector<cublasLtMatmulHeuristicResult_t> best_guess(Device& device, const ProductKey& key,
                                                          const Plan& plan, int most);
  bool choose(Device& device, const Product& product, const ProductKey& key, Plan& plan,
              bool may_time);
  cublasStatus_t launch(Device& device, const Product& product, const Plan& plan,
                        const cublasLtMatmulAlgo_t& algorithm, Lane lane);
  float time(Device& device, const Product& product, const Plan& plan,
             const cublasLtMatmulAlgo_t& algorithm, int count);
  // Times candidates, and returns how many: those come first in `candidates`, fastest first.
  int rank(Device& device, const Product& product, const Plan& plan,
           std::span<cublasLtMatmulHeuristicResult_t> candidates);
  using Finalists = std::span<const cublasLtMatmulHeuristicResult_t>;
  std::size_t fastest_interleaved(Device& device, const Product& product, const Plan& plan,
                                  Finalists finalists);
  std::size_t fastest_at_length(Device& device, const Product& product, const Plan& plan,
                                Finalists finalists);

  cublasLtHandle_t handle_ = nullptr;
  Tuning tuning_;
  bool thorough_ = false;
  int timed_ = 0;
  std::map<ProductKey, Plan> plans_;
  std::map<ProductKey, ChangingPlan> changing_;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

}  // namespace assay::train::cuda
