#include "train/cuda/cuda_backend_impl.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/error.h"
#include "base/units.h"

namespace assay::train::cuda {

using step::View;

base::Result<std::unique_ptr<CudaBackend>> make_cuda_backend(const CudaOptions& options) {
  auto backend = std::make_unique<CudaBackendImpl>(options);
  ASSAY_TRY_VOID(backend->open());
  return std::unique_ptr<CudaBackend>(std::move(backend));
}

int device_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

base::Result<void> CudaBackendImpl::open() {
  int count = 0;
  const cudaError_t found = cudaGetDeviceCount(&count);
  if (found != cudaSuccess || options_.device >= count) {
    return base::fail(base::unfit_error(
        {},
        found != cudaSuccess ? fmt::format("no GPU found ({})", cudaGetErrorString(found))
                             : fmt::format("no GPU {} found: there are {}", options_.device, count),
        "use --device cpu"));
  }
  cudaDeviceProp properties{};
  device_.check(cudaSetDevice(options_.device), "GPU");
  device_.check(cudaGetDeviceProperties(&properties, options_.device), "GPU");
  capability_ = {properties.name, properties.major, properties.minor};
  ASSAY_TRY_VOID(check_capability(capability_));
  device_.check(cudaStreamCreateWithFlags(&device_.stream, cudaStreamNonBlocking), "stream");
  device_.check(cudaHostAlloc(reinterpret_cast<void**>(&pinned_scalars_), sizeof(Scalars),
                              cudaHostAllocDefault),
                "pinned memory");
  std::size_t total = 0;
  device_.check(cudaMemGetInfo(&free_before_, &total), "GPU memory");
  description_ = fmt::format("{}, {}, bf16 with fp32 masters{}", properties.name,
                             base::to_text(base::Bytes(static_cast<std::int64_t>(total))),
                             capability_.has_fp8() ? "" : ", no fp8");
  ASSAY_TRY_VOID(outcome());
  // Loading the library takes a while, during which the graphs of attention can be built.
  opening_products_ = std::async(std::launch::async, [this] {
    cudaSetDevice(options_.device);
    return products_.open(options_.tuning_file, options_.thorough_tuning);
  });
  return {};
}

base::Result<void> CudaBackendImpl::wait_for_products() {
  return opening_products_.valid() ? opening_products_.get() : base::Result<void>();
}

CudaBackendImpl::~CudaBackendImpl() {
  if (device_.stream != nullptr) cudaStreamSynchronize(device_.stream);
  if (copy_stream_ != nullptr) cudaStreamSynchronize(copy_stream_);
  for (cudaEvent_t event : events_) cudaEventDestroy(event);
  if (copied_ != nullptr) cudaEventDestroy(copied_);
  if (copy_stream_ != nullptr) cudaStreamDestroy(copy_stream_);
  if (arena_ != nullptr) cudaFree(arena_);
  if (pinned_scalars_ != nullptr) cudaFreeHost(pinned_scalars_);
  if (device_.stream != nullptr) cudaStreamDestroy(device_.stream);
}

base::Result<void> CudaBackendImpl::outcome() const {
  if (device_.failure().empty()) return {};
  return base::fail(base::failed_error("cuda", device_.failure()));
}

std::byte* CudaBackendImpl::address(const View& view) const {
  const auto buffer = static_cast<std::size_t>(view.buffer);
  return arena_ + plan_->offset[buffer] +
         view.offset * step::bytes_of(program_->buffers[buffer].type);
}

Matrix CudaBackendImpl::matrix(const View& view) const {
  return {address(view), view.rows, view.cols, view.stride};
}

Matrix CudaBackendImpl::at(const std::vector<View>& views, std::size_t i) const {
  return i < views.size() ? matrix(views[i]) : Matrix{};
}

Tokens CudaBackendImpl::tokens(const View& view) const {
  return {reinterpret_cast<const std::int32_t*>(address(view)), view.rows};
}

base::Result<void> CudaBackendImpl::write(const View& to, std::span<const std::byte> from) {
  wait_for_copy();
  set_has_first_weights(false);
  const Rows rows = rows_of(to);
  ASSAY_CHECK(from.size() == rows.bytes * rows.count,
              "the host memory must be as large as the view");
  return copy(address(to), rows.pitch, from.data(), rows.bytes, rows, cudaMemcpyHostToDevice);
}

base::Result<void> CudaBackendImpl::clear(const step::Program& /*program*/, const View& view) {
  wait_for_copy();
  set_has_first_weights(false);
  const Rows rows = rows_of(view);
  const cudaError_t status =
      rows.count == 1
          ? cudaMemsetAsync(address(view), 0, rows.bytes, device_.stream)
          : cudaMemset2DAsync(address(view), rows.pitch, 0, rows.bytes, rows.count, device_.stream);
  device_.check(status, "clearing state");
  device_.check(cudaStreamSynchronize(device_.stream), "clearing state");
  return outcome();
}

base::Result<void> CudaBackendImpl::read(const View& from, std::span<std::byte> to) {
  const Rows rows = rows_of(from);
  ASSAY_CHECK(to.size() == rows.bytes * rows.count, "the host memory must be as large as the view");
  return copy(to.data(), rows.bytes, address(from), rows.pitch, rows, cudaMemcpyDeviceToHost);
}

CudaBackendImpl::Rows CudaBackendImpl::rows_of(const View& view) const {
  const step::Dtype type = program_->buffers[static_cast<std::size_t>(view.buffer)].type;
  const auto bytes = [&](std::int64_t elements) {
    return static_cast<std::size_t>(elements * step::bytes_of(type));
  };
  // Contiguous rows are copied as one: CUDA limits the pitch, not the length.
  if (view.rows == 1 || view.stride == view.cols) {
    return {.count = 1, .bytes = bytes(view.elements()), .pitch = bytes(view.elements())};
  }
  return {.count = static_cast<std::size_t>(view.rows),
          .bytes = bytes(view.cols),
          .pitch = bytes(view.stride)};
}

base::Result<void> CudaBackendImpl::copy(void* to, std::size_t to_pitch, const void* from,
                                         std::size_t from_pitch, const Rows& rows,
                                         cudaMemcpyKind kind) {
  const cudaError_t status = rows.count == 1
                                 ? cudaMemcpyAsync(to, from, rows.bytes, kind, device_.stream)
                                 : cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, rows.bytes,
                                                     rows.count, kind, device_.stream);
  device_.check(status, "copying to or from the device");
  device_.check(cudaStreamSynchronize(device_.stream), "copying to or from the device");
  return outcome();
}

// Failing to save is not fatal: other processes then time these products themselves.
void CudaBackendImpl::keep_tuning() {
  const auto saved = products_.save();
  if (saved || std::exchange(noted_tuning_, true)) return;
  note("cannot cache the fastest matrix-product algorithms: " + saved.error().line());
}

base::Result<std::string> CudaBackendImpl::adopt(const std::string& algorithms) {
  ASSAY_TRY_VOID(wait_for_products());
  if (algorithms.empty() || products_.adopt(algorithms)) return std::string();
  return fmt::format(
      "its matrix products were computed by algorithms of {}; this is {}: results may differ in "
      "their last bits",
      algorithms.substr(0, algorithms.find('\n')), products_.machine());
}

base::Result<void> CudaBackendImpl::copy_now(void* to, const void* from, std::size_t bytes) {
  return copy(to, bytes, from, bytes, {.count = 1, .bytes = bytes, .pitch = bytes},
              cudaMemcpyDefault);
}

void CudaBackendImpl::begin_step(const StepSettings& settings) {
  settings_ = settings;
  timed_ = 0;
  device_.check(cudaMemsetAsync(address(program_->scalars), 0, sizeof(Scalars), device_.stream),
                "scalars");
}

void CudaBackendImpl::set_batch(const step::Op& op, const MicroBatch& batch) {
  device_.log_to(log_, &op);
  std::vector<OperandShape> read;
  for (const step::View& view : op.out) read.emplace_back(this->tokens(view));
  device_.executed(op.kind, {}, read);
  const auto to = [&](const step::View* view) {
    return view == nullptr ? nullptr : reinterpret_cast<std::int32_t*>(address(*view));
  };
  const ReadPlaces places(op);
  if (places.documents != nullptr) biased_ = nullptr;
  batches_.send(device_, batch, {to(places.tokens), to(places.targets), to(places.documents)});
}

std::vector<Matrix> CudaBackendImpl::all(const std::vector<step::View>& views) const {
  std::vector<Matrix> list;
  for (const step::View& view : views) list.push_back(matrix(view));
  return list;
}

base::Result<void> CudaBackendImpl::execute(const step::Op& op) {
  ASSAY_TRY_VOID(outcome());  // a batch may have been invalid
  if (op.phase == step::Phase::kOptimizer) wait_for_copy();
  device_.log_to(log_, &op);
  if (times_ops_) begin_op(op);
  dispatch(op);
  if (times_ops_) end_op();
  return outcome();
}

base::Result<Scalars> CudaBackendImpl::finish_step() {
  device_.check(cudaMemcpyAsync(pinned_scalars_, address(program_->scalars), sizeof(Scalars),
                                cudaMemcpyDeviceToHost, device_.stream),
                "scalars");
  device_.check(cudaStreamSynchronize(device_.stream), "the step");
  // After a failed exchange, the stream continues without it.
  if (options_.groups != nullptr) {
    ASSAY_TRY_VOID(options_.groups->check());
    options_.groups->add_waited_s(wait_times_.take_s(device_));
  }
  ASSAY_TRY_VOID(outcome());
  if (timed_ > 0) read_op_times();
  keep_tuning();
  return *pinned_scalars_;
}

void CudaBackendImpl::begin_op(const step::Op& op) {
  while (events_.size() < 2 * (timed_ + 1)) {
    cudaEvent_t event = nullptr;
    device_.check(cudaEventCreate(&event), "event");
    events_.push_back(event);
  }
  op_times_.resize(timed_ + 1);
  op_times_[timed_] = {.op = &op};
  device_.check(cudaEventRecord(events_[2 * timed_], device_.stream), "event");
}

void CudaBackendImpl::end_op() {
  device_.check(cudaEventRecord(events_[2 * timed_ + 1], device_.stream), "event");
  ++timed_;
}

void CudaBackendImpl::read_op_times() {
  for (std::size_t i = 0; i < timed_; ++i) {
    float ms = 0;
    device_.check(cudaEventElapsedTime(&ms, events_[2 * i], events_[2 * i + 1]), "event");
    op_times_[i].ms = static_cast<double>(ms);
    if (i == 0) continue;
    device_.check(cudaEventElapsedTime(&ms, events_[2 * i - 1], events_[2 * i]), "event");
    op_times_[i].idle_ms = static_cast<double>(ms);
  }
}

std::string CudaBackendImpl::pci_bus_id() const {
  char text[32] = {};
  const bool known = cudaDeviceGetPCIBusId(text, sizeof text, options_.device) == cudaSuccess;
  return known ? text : std::string();
}

MemoryUse CudaBackendImpl::memory() const {
  std::size_t free = 0;
  std::size_t total = 0;
  cudaMemGetInfo(&free, &total);
  return {.planned = plan_ == nullptr ? 0 : plan_->bytes,
          .workspace = workspace_bytes_,
          .measured = (static_cast<std::int64_t>(free_before_) - static_cast<std::int64_t>(free)) /
                      options_.device_ranks};
}

}  // namespace assay::train::cuda
