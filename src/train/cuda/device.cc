#include "train/cuda/device.h"

#include <fmt/format.h>

#include "train/backend.h"

namespace assay::train::cuda {

void Device::did(step::Kind kind, const std::vector<Shape>& in, const std::vector<Shape>& out) {
  if (log_ == nullptr) return;
  Executed executed{.op = op_, .kind = kind};
  for (const Shape& shape : in) {
    if (shape.there) executed.in.push_back({shape.rows, shape.cols});
  }
  for (const Shape& shape : out) {
    if (shape.there) executed.out.push_back({shape.rows, shape.cols});
  }
  log_->push_back(std::move(executed));
}

void Device::check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) failed(fmt::format("{}: {}", what, cudaGetErrorString(status)));
}

void Device::failed(std::string what) {
  if (failure_.empty()) failure_ = std::move(what);
}

}  // namespace assay::train::cuda
