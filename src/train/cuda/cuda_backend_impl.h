// CudaBackendImpl: the implementation of cuda_backend.h. cuda_backend_prepare.cc allocates memory
// and does everything a step must not wait for, cuda_backend_dispatch.cc launches ops,
// cuda_backend_copy.cc copies state to the host, cuda_backend_draw.cc makes initial weights,
// cuda_backend.cc has the rest.
#pragma once

#include <cuda_runtime_api.h>

#include <future>
#include <vector>

#include "base/error.h"
#include "train/cuda/batches.h"
#include "train/cuda/cuda_backend.h"
#include "train/cuda/cudnn/attention_graphs.h"
#include "train/cuda/device.h"
#include "train/cuda/expert_rows.h"
#include "train/cuda/grouped_products.h"
#include "train/cuda/kernels.h"
#include "train/cuda/matmul.h"
#include "train/cuda/pinned_memory.h"
#include "train/cuda/wait_times.h"

namespace assay::train::cuda {

class CudaBackendImpl : public CudaBackend {
 public:
  explicit CudaBackendImpl(CudaOptions options) : options_(std::move(options)) {}
  ~CudaBackendImpl() override;
  base::Result<void> open();

  base::Result<std::int64_t> available_bytes() override;
  base::Result<std::int64_t> extra_bytes(const step::Program& program) override;
  base::Result<void> prepare(const step::Program& program, const step::MemoryPlan& plan) override;
  base::Result<void> write(const step::View& to, std::span<const std::byte> from) override;
  base::Result<void> clear(const step::Program& program, const step::View& view) override;
  base::Result<void> read(const step::View& from, std::span<std::byte> to) override;
  base::Result<bool> draw(const InitialDraw& draw) override;
  [[nodiscard]] std::string algorithms() const override { return products_.algorithms(); }
  base::Result<std::string> adopt(const std::string& algorithms) override;
  void expect_copies() override;
  base::Result<HostCopy> copy_out(const step::Program& program,
                                  std::span<const step::View> views) override;
  void begin_step(const StepSettings& settings) override;
  void set_batch(const step::Op& op, const MicroBatch& batch) override;
  base::Result<void> execute(const step::Op& op) override;
  base::Result<Scalars> finish_step() override;
  [[nodiscard]] std::int64_t measured_bytes() const override { return memory().measured; }
  [[nodiscard]] std::string description() const override { return description_; }

  void time_ops(bool on) override { times_ops_ = on; }
  [[nodiscard]] const std::vector<OpTime>& op_times() const override { return op_times_; }
  [[nodiscard]] MemoryUse memory() const override;
  [[nodiscard]] std::string pci_bus_id() const override;
  [[nodiscard]] std::chrono::nanoseconds waited_for_experts() const override {
    return expert_rows_.waited();
  }

 private:
  // cuda_backend_prepare.cc
  base::Result<void> build_attention();
  base::Result<void> check_memory();
  base::Result<void> take_memory();
  [[nodiscard]] base::Error does_not_fit(std::int64_t available) const;
  base::Result<void> wait_for_products();
  void keep_tuning();
  base::Result<void> tune_products();

  // cuda_backend_copy.cc
  [[nodiscard]] std::size_t state_bytes() const;
  base::Result<void> begin_pinning();
  // `at`: offset of `to` in the pinned memory.
  void begin_copy(std::span<std::byte> to, const std::byte* from, std::size_t at);
  void wait_for_copy();

  // cuda_backend_dispatch.cc
  void dispatch(const step::Op& op);
  void exchange(const step::Op& op);
  void exchange_rows(const step::Op& op);
  void wait_for_exchange(const step::Op& op);
  void execute_norm(const step::Op& op);
  void execute_attention(const step::Op& op);
  // The mask for this op's documents, as a bias on the attention scores; empty without a document
  // mask.
  void make_document_bias(const step::Op& op);
  [[nodiscard]] Matrix document_bias_of(const step::Op& op) const;
  void execute_context(const step::Op& op);
  void execute_mixture(const step::Op& op);
  void execute_optimizer(const step::Op& op);
  [[nodiscard]] bool is_fp32(const step::View& view) const;
  [[nodiscard]] Product product_of(const step::Op& op) const;
  [[nodiscard]] GroupedProduct grouped_product_of(const step::Op& op) const;
  // Router weights and slots, which are operands i and i + 1 if present.
  [[nodiscard]] RowWeights row_weights(const step::Op& op, std::size_t i) const;
  [[nodiscard]] AttentionShape attention_shape(const step::Op& op) const;
  [[nodiscard]] AttentionOperands attention_of(const step::Op& op) const;
  [[nodiscard]] AttentionGradOperands attention_grad_of(const step::Op& op) const;

  // A view in the terms of cudaMemcpy2D.
  struct Rows {
    std::size_t count = 0;
    std::size_t bytes = 0;  // per row
    std::size_t pitch = 0;  // distance between rows on the device
  };
  [[nodiscard]] Rows rows_of(const step::View& view) const;
  base::Result<void> copy(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                          const Rows& rows, cudaMemcpyKind kind);
  // Copies between host and device, in either direction, in stream order.
  base::Result<void> copy_now(void* to, const void* from, std::size_t bytes);
  [[nodiscard]] std::byte* address(const step::View& view) const;
  [[nodiscard]] Matrix matrix(const step::View& view) const;
  // The i-th view as a matrix, or an empty one.
  [[nodiscard]] Matrix at(const std::vector<step::View>& views, std::size_t i) const;
  [[nodiscard]] std::vector<Matrix> all(const std::vector<step::View>& views) const;
  [[nodiscard]] Tokens tokens(const step::View& view) const;
  [[nodiscard]] base::Result<void> outcome() const;
  void begin_op(const step::Op& op);
  void end_op();
  void read_op_times();

  CudaOptions options_;
  std::string description_;
  GpuCapability capability_;
  Device device_;
  Matmul products_;
  std::future<base::Result<void>> opening_products_;
  bool noted_tuning_ = false;  // reported that tuning results cannot be saved
  GroupedProducts grouped_{products_};
  ExpertRows expert_rows_;
  WaitTimes wait_times_;
  Batches batches_;
  AttentionGraphs attention_;
  bool attention_built_ = false;  // for the shapes of the last program
  // The documents that the bias in the workspace was made from; null: it is not valid.
  const void* biased_ = nullptr;
  const step::Program* program_ = nullptr;
  const step::MemoryPlan* plan_ = nullptr;
  StepSettings settings_;
  std::byte* arena_ = nullptr;
  std::int64_t workspace_bytes_ = 0;
  std::size_t free_before_ = 0;
  Scalars* pinned_scalars_ = nullptr;

  // Copying state to the host: ops that change the state wait for `copied_`.
  std::shared_ptr<PinnedMemory> pinned_;
  cudaStream_t copy_stream_ = nullptr;
  cudaEvent_t copied_ = nullptr;
  bool copying_ = false;
  bool noted_pinning_ = false;  // reported that there is too little memory

  // Two events per timed op: before and after.
  bool times_ops_ = false;
  std::vector<cudaEvent_t> events_;
  std::vector<OpTime> op_times_;
  std::size_t timed_ = 0;
};

}  // namespace assay::train::cuda
