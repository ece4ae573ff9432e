// A program of the CUDA runtime that does a known amount of every kind of work and prints it, one
// "name number" per line: what `assay run` must count on a real card. Run by on_a_card.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

__global__ void add_one(float* data, int size) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < size) data[i] += 1.0F;
}

__global__ void together(float* data) {
  cooperative_groups::this_grid().sync();
  if (threadIdx.x == 0) data[blockIdx.x] += 1.0F;
}

void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "card: %s: %s\n", what, cudaGetErrorString(result));
  std::exit(1);
}
#define CHECK(call) check(call, #call)

constexpr int kElements = 1 << 16;
constexpr std::size_t kBytes = kElements * sizeof(float);
constexpr int kLaunches = 1000;
constexpr int kThreads = 4;
constexpr int kCaptured = 7;
constexpr int kGraphLaunches = 20;

void launches(float* data) {
  cudaStream_t stream = nullptr;
  CHECK(cudaStreamCreate(&stream));
  for (int i = 0; i < kLaunches; ++i) add_one<<<kElements / 256, 256, 0, stream>>>(data, kElements);
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaStreamDestroy(stream));
}

}  // namespace

int main() {
  float* data = nullptr;
  CHECK(cudaMalloc(&data, kBytes));
  CHECK(cudaMemset(data, 0, kBytes));
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(launches, data);
  for (std::thread& thread : threads) thread.join();
  CHECK(cudaGetLastError());

  void* arguments[] = {&data};
  CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(together), dim3(4), dim3(32), arguments,
                                    0, nullptr));
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1);
  config.blockDim = dim3(32);
  CHECK(cudaLaunchKernelEx(&config, add_one, data, kElements));

  cudaStream_t stream = nullptr;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < kCaptured; ++i) add_one<<<1, 32, 0, stream>>>(data, 32);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t executable = nullptr;
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  for (int i = 0; i < kGraphLaunches; ++i) CHECK(cudaGraphLaunch(executable, stream));

  float* pooled = nullptr;
  CHECK(cudaMallocAsync(&pooled, 2 * kBytes, stream));
  CHECK(cudaFreeAsync(pooled, stream));
  CHECK(cudaDeviceSynchronize());
  std::vector<float> host(kElements);
  CHECK(cudaMemcpy(host.data(), data, kBytes, cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(data, host.data(), kBytes, cudaMemcpyHostToDevice));
  CHECK(cudaFree(data));
  CHECK(cudaGraphExecDestroy(executable));

  // By name, or by several that a runtime may choose between.
  std::printf("kernels+kernels_ex %d\n", kThreads * kLaunches + kCaptured + 1);
  std::printf("kernels_cooperative %d\n", 1);
  std::printf("captured_kernels %d\n", kCaptured);
  std::printf("graphs %d\n", kGraphLaunches);
  std::printf("graph_kernels %d\n", kGraphLaunches * kCaptured);
  std::printf("allocs_device.bytes %zu\n", kBytes);
  std::printf("allocs_async.bytes %zu\n", 2 * kBytes);
  std::printf("copies_to_device+copies_unified+copies_to_host.bytes %zu\n", 2 * kBytes);
  std::printf("sets.bytes %zu\n", kBytes);
  // The first value was 0: every launch by a thread added 1, and the rest some more.
  std::printf("result %d\n", host[kElements - 1] >= kThreads * 1.0F ? 1 : 0);
  return 0;
}
