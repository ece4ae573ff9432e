#include "train/cuda/grouped_kernel.h"

#include <cuda.h>

#include "train/cuda/grouped_kernel.cuh"
#include "train/cuda/grouped_product.h"
#include "train/cuda/kernels.h"

namespace assay::train::cuda {
namespace {

// Height of a band: its rows stay in the L2 cache while all weights pass through.
constexpr int kTilesBelow = 16;

using Encode = decltype(&cuTensorMapEncodeTiled);

bool is_aligned(const Matrix& m) {
  return reinterpret_cast<std::uintptr_t>(m.data) % 16 == 0 && m.stride % kVector == 0 &&
         m.cols % kVector == 0;
}

// Describes boxes of 64 x 64 elements in `parts` stacked matrices.
bool describe(Encode encode, const Matrix& m, std::int64_t parts, CUtensorMap& map) {
  const std::int64_t rows = m.rows / parts;
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(m.cols), static_cast<cuuint64_t>(rows),
                              static_cast<cuuint64_t>(parts)};
  const cuuint64_t strides[] = {static_cast<cuuint64_t>(m.stride * 2),
                                static_cast<cuuint64_t>(rows * m.stride * 2)};
  const cuuint32_t box[] = {grouped::kDeep, grouped::kPiece, 1};
  const cuuint32_t steps[] = {1, 1, 1};
  return encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, m.data, sizes, strides, box, steps,
                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

GroupedForm form_of(const GroupedProduct& p) {
  return p.transpose_a   ? GroupedForm::kWeightGradients
         : p.transpose_b ? GroupedForm::kRows
                         : GroupedForm::kRowGradients;
}

auto kernel_of(GroupedForm form) {
  switch (form) {
    case GroupedForm::kRows:
      return grouped::grouped_kernel<GroupedForm::kRows>;
    case GroupedForm::kRowGradients:
      return grouped::grouped_kernel<GroupedForm::kRowGradients>;
    default:
      return grouped::grouped_kernel<GroupedForm::kWeightGradients>;
  }
}

}  // namespace

void GroupedKernel::open() {
  multiprocessors_ = 0;
  int device = 0;
  cudaDeviceProp properties{};
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaGetDeviceProperties(&properties, device) != cudaSuccess || properties.major != 9 ||
      properties.minor != 0) {
    return;
  }
  // A version compiled for another architecture, and translated for this GPU, would have an empty
  // body.
  for (const auto form :
       {GroupedForm::kRows, GroupedForm::kRowGradients, GroupedForm::kWeightGradients}) {
    cudaFuncAttributes attributes{};
    const auto kernel = kernel_of(form);
    if (cudaFuncGetAttributes(&attributes, kernel) != cudaSuccess || attributes.ptxVersion != 90 ||
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(grouped::kShared)) != cudaSuccess) {
      cudaGetLastError();
      return;
    }
  }
  constexpr unsigned kVersion = 12000;  // the first with this function
  cudaDriverEntryPointQueryResult found{};
  if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode_, kVersion,
                                       cudaEnableDefault, &found) != cudaSuccess ||
      found != cudaDriverEntryPointSuccess) {
    cudaGetLastError();
    return;
  }
  multiprocessors_ = properties.multiProcessorCount;
}

bool GroupedKernel::takes(const GroupedProduct& p) const {
  return multiprocessors_ > 0 && !p.fp8() && is_aligned(p.a) && is_aligned(p.b) && is_aligned(p.c);
}

void GroupedKernel::multiply(Device& device, const GroupedProduct& p) const {
  CUtensorMap map_a;
  CUtensorMap map_b;
  CUtensorMap map_c;
  const auto encode = reinterpret_cast<Encode>(encode_);
  const std::int64_t gradients = p.transpose_a ? p.experts : 1;
  const std::int64_t weights = p.transpose_a ? 1 : p.experts;
  if (!describe(encode, p.a, 1, map_a) || !describe(encode, p.b, weights, map_b) ||
      !describe(encode, p.c, gradients, map_c)) {
    return device.failed("products of experts: the operands cannot be described");
  }
  const GroupedArguments arguments{.first_rows = p.first_rows,
                                   .c = p.c.as<Half>(),
                                   .stride = p.c.stride,
                                   .experts = static_cast<int>(p.experts),
                                   .pieces = static_cast<int>(p.pieces),
                                   .height = static_cast<int>(p.a.cols),
                                   .width = static_cast<int>(p.c.cols),
                                   .inner = static_cast<int>(p.a.cols),
                                   .tall = kTilesBelow,
                                   .adds = p.adds};
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {grouped::kCluster, 1, 1};
  cudaLaunchConfig_t launch{};
  launch.gridDim = static_cast<unsigned>(multiprocessors_ / grouped::kCluster * grouped::kCluster);
  launch.blockDim = grouped::kThreads;
  launch.dynamicSmemBytes = grouped::kShared;
  launch.stream = device.stream;
  launch.attrs = &cluster;
  launch.numAttrs = 1;
  device.check(cudaLaunchKernelEx(&launch, kernel_of(form_of(p)), map_a, map_b, map_c, arguments),
               "products of experts");
}

}  // namespace assay::train::cuda
