#include "lineage/graph/result_variables.h"

#include <algorithm>
#include <array>
#include <set>

#include "lineage/redact/command.h"

namespace assay::lineage {
namespace {

// A star at the end matches every variable with that prefix. docs/run.md has the same list.
constexpr std::array<std::string_view, 48> kList = {"PYTHONHASHSEED",
                                                    "PYTHONPATH",
                                                    "PYTHONHOME",
                                                    "PYTHONOPTIMIZE",
                                                    "LD_LIBRARY_PATH",
                                                    "CUDA_*",
                                                    "CUBLAS_*",
                                                    "CUDNN_*",
                                                    "NVIDIA_TF32_OVERRIDE",
                                                    "NCCL_*",
                                                    "HIP_VISIBLE_DEVICES",
                                                    "ROCR_VISIBLE_DEVICES",
                                                    "TORCH_*",
                                                    "PYTORCH_*",
                                                    "TORCHINDUCTOR_*",
                                                    "TRITON_*",
                                                    "TF_CPP_*",
                                                    "TF_CUDNN_*",
                                                    "TF_DETERMINISTIC_OPS",
                                                    "TF_ENABLE_*",
                                                    "TF_XLA_FLAGS",
                                                    "XLA_FLAGS",
                                                    "JAX_*",
                                                    "HF_*",
                                                    "TRANSFORMERS_*",
                                                    "TOKENIZERS_PARALLELISM",
                                                    "OMP_*",
                                                    "MKL_*",
                                                    "OPENBLAS_*",
                                                    "BLIS_*",
                                                    "NUMEXPR_*",
                                                    "RANK",
                                                    "WORLD_SIZE",
                                                    "LOCAL_RANK",
                                                    "LANG",
                                                    "LC_*",
                                                    "TZ",
                                                    "SOURCE_DATE_EPOCH",
                                                    "CC",
                                                    "CXX",
                                                    "CFLAGS",
                                                    "CXXFLAGS",
                                                    "CPPFLAGS",
                                                    "LDFLAGS",
                                                    "MAKEFLAGS",
                                                    "NODE_ENV",
                                                    "NODE_OPTIONS",
                                                    "R_LIBS"};

}  // namespace

bool changes_results(std::string_view variable) {
  return std::any_of(kList.begin(), kList.end(), [&](std::string_view one) {
    return one.ends_with('*') ? variable.starts_with(one.substr(0, one.size() - 1))
                              : variable == one;
  });
}

Variables result_variables(const Variables& environment) {
  Variables found;
  for (const auto& [name, value] : environment) {
    if (changes_results(name)) found.emplace(name, value);
  }
  return found;
}

std::vector<VariableDifference> result_variable_differences(const Variables& recorded,
                                                            const Variables& here) {
  // A run without an environment was recorded without its context.
  if (recorded.empty()) return {};
  std::vector<VariableDifference> found;
  std::set<std::string> names;
  for (const auto& [name, value] : result_variables(recorded)) names.insert(name);
  for (const auto& [name, value] : result_variables(here)) names.insert(name);
  const auto value_in = [](const Variables& all, const std::string& name) {
    const auto at = all.find(name);
    return at == all.end() ? std::string() : at->second;
  };
  for (const std::string& name : names) {
    VariableDifference one{name, value_in(recorded, name), value_in(here, name)};
    if (is_redacted(one.recorded) || one.recorded == one.here) continue;
    found.push_back(std::move(one));
  }
  return found;
}

}  // namespace assay::lineage
