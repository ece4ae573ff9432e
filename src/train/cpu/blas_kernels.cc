#include "train/cpu/blas_kernels.h"

#include <cblas.h>

#include <cstdlib>
#include <string_view>

namespace assay::train::cpu {

bool better_kernels_after_restart() {
  constexpr const char* kVariable = "OPENBLAS_CORETYPE";
  if (std::getenv(kVariable) != nullptr) return false;
  if (std::string_view(openblas_get_corename()) != "Prescott") return false;
  __builtin_cpu_init();
  const char* better = nullptr;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) better = "Haswell";
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")) {
    better = "SkylakeX";
  }
  return better != nullptr && ::setenv(kVariable, better, 1) == 0;
}

}  // namespace assay::train::cpu
