// Ranks that are threads on one GPU, with a fake of CUDA, so without a GPU: every call, whoever
// copies. With real kernels: tests/train/cuda_ranks_test.cc.
#include "comm/cuda/one_gpu.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "comm/cuda/testing/device_calls.h"
#include "nccl/fake_cuda.h"

namespace assay::comm::testing {
namespace {

base::Result<void> random_calls(int ranks, unsigned seed, const OneGpuOptions& options) {
  ASSAY_TRY(const auto devices, make_one_gpu(ranks, 0, options));
  return run_local(ranks, [&](Communicator& c) -> base::Result<void> {
    Communicator& device = *devices[static_cast<std::size_t>(c.rank())];
    DeviceMemoryOfCalls memory;
    auto done = gather(device, memory, 100);
    if (done) done = make_random_calls(device, seed, memory);
    if (!done) device.abort(done.error());
    ASSAY_TRY_VOID(std::move(done));
    return c.barrier();  // memory that others copy from must stay until they are done
  });
}

RC_GTEST_PROP(OneGpuCalls, AreTheirDefinitionWhoeverCopies, (unsigned seed)) {
  const OneGpuOptions options{.copying =
                                  *rc::gen::element(Copying::kBesideKernels, Copying::kByDriver)};
  const int ranks = *rc::gen::inRange(2, 6);
  const int before = fakecuda::copies_by_kernel();
  const auto done = random_calls(ranks, seed, options);
  if (!done) RC_FAIL(done.error().line());
  const bool beside = options.copying == Copying::kBesideKernels;
  RC_ASSERT((fakecuda::copies_by_kernel() > before) == beside);
  RC_ASSERT(cudaGetLastError() == cudaSuccess);
  RC_ASSERT(fakecuda::events_left() == 0);
  RC_ASSERT(fakecuda::allocations_left() == 0);
}

}  // namespace
}  // namespace assay::comm::testing
