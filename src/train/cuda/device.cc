#include "train/cuda/device.h"

#include <fmt/format.h>

namespace assay::train::cuda {

void Device::check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) failed(fmt::format("{}: {}", what, cudaGetErrorString(status)));
}

void Device::failed(std::string what) {
  if (failure_.empty()) failure_ = std::move(what);
}

}  // namespace assay::train::cuda
