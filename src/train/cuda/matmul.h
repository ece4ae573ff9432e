// Matmul: matrix products by cuBLASLt. For each distinct product that is not known (tuning.h) the
// library's heuristic candidates are timed once on the device and the fastest is used from then on.
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

// Where a product is computed: products on different lanes may run side by side.
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

  // `thorough`: every product is timed, whatever is known, and each long enough to reach the limit
  // of the GPU's power, which takes seconds for each.
  base::Result<void> open(std::string tuning_file, bool thorough = false);
  // Finds the fastest algorithm unless it is known. Overwrites the product's result.
  void tune(Device& device, const Product& product);
  // A product that was not tuned before is tuned now if that leaves its operands unchanged.
  void multiply(Device& device, const Product& product);
  // For products of a group, which are timed together: what cuBLASLt suggests, the likeliest first;
  // or the one algorithm that the tuning file has, which `is_known` says.
  std::vector<cublasLtMatmulAlgo_t> suggestions(Device& device, const Product& product,
                                                bool& is_known);
  // What multiply_like() uses from now on; and in later runs, if it is to be remembered.
  void use(const Product& tuned, const cublasLtMatmulAlgo_t& algorithm, bool remembers);
  // What is known of it before it is timed; or null.
  [[nodiscard]] const cublasLtMatmulAlgo_t* known(const Product& product) const;
  // What use() was called with for it, or a checkpoint has brought since; or null.
  [[nodiscard]] const cublasLtMatmulAlgo_t* used(const Product& tuned) const;
  // A product that differs from `tuned`, for which use() was called, in how many rows the operands
  // of an expert have: with its algorithm, or where cuBLASLt refuses that, with a guess.
  void multiply_like(Device& device, const Product& tuned, const Product& product, Lane lane);
  // Writes the results to the tuning file.
  base::Result<void> save() { return tuning_.save(); }
  void read_again() { tuning_.read_again(); }
  // The algorithms of all products so far, as text, and such a text instead of them (tuning.h).
  [[nodiscard]] std::string algorithms() const;
  bool adopt(const std::string& text);
  [[nodiscard]] const std::string& machine() const { return tuning_.machine(); }
  [[nodiscard]] bool is_thorough() const { return thorough_; }
  // Products that were timed, since it was opened.
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
  // What multiply_like() changes the layouts of. Guesses, by the sides of a, are forgotten when
  // there are many: a guess depends on its product alone, so that bits do not depend on what came
  // before.
  struct ChangingPlan {
    Plan plan;
    std::map<std::pair<std::int64_t, std::int64_t>, cublasLtMatmulAlgo_t> guesses;
  };
  static Plan make_plan(const Product& product);
  static void point_at_operands(const Plan& plan, const Product& product);
  static void destroy(const Plan& plan);
  Plan* plan_of(Device& device, const Product& product, bool may_time);
  // By the library's own guess, the likeliest to be fast first.
  std::vector<cublasLtMatmulHeuristicResult_t> likeliest(Device& device, const ProductKey& key,
                                                         const Plan& plan, int most);
  bool choose(Device& device, const Product& product, const ProductKey& key, Plan& plan,
              bool may_time);
  cublasStatus_t launch(Device& device, const Product& product, const Plan& plan,
                        const cublasLtMatmulAlgo_t& algorithm, Lane lane);
  float time(Device& device, const Product& product, const Plan& plan,
             const cublasLtMatmulAlgo_t& algorithm, int count);
  // How many candidates were tried: they are the first ones then, the fastest first.
  int rank(Device& device, const Product& product, const Plan& plan,
           std::span<cublasLtMatmulHeuristicResult_t> candidates);
  using Finalists = std::span<const cublasLtMatmulHeuristicResult_t>;
  std::size_t fastest_in_turns(Device& device, const Product& product, const Plan& plan,
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
