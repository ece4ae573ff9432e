// Patterns of GPU work that show what a library between a program and the driver costs, on the CUDA
// runtime and without a framework's own time: see patterns.py for what they are.
//
//   patterns launch|argmin|balanced|churn [SECONDS=5] [K=8192] [LIVE=50000]
//
// The last line is JSON: the median and least milliseconds per step, nanoseconds per launch (churn:
// per allocation and free together), steps.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr int kRows = 8192;
constexpr int kWidth = 50;
constexpr int kStages = 3;

void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(result));
  std::exit(1);
}

__global__ void add_one(float* to) {
  to[threadIdx.x] += 1;
}
__global__ void fill(float* to, int count, unsigned seed) {
  const int at = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (at < count)
    to[at] = static_cast<float>((at + 1U) * 2654435761U * (seed + 1) >> 8U) / (1 << 24);
}
__device__ float distance(const float* rows, const float* centroid, int row) {
  float sum = 0;
  for (int i = 0; i < kWidth; ++i) {
    const float apart = rows[row * kWidth + i] - centroid[i];
    sum += apart * apart;
  }
  return sum;
}
__global__ void nearest(const float* rows, const float* centroids, int number, int* owner) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  float least = 1e30F;
  for (int i = 0; i < number; ++i) {
    const float apart = distance(rows, centroids + i * kWidth, row);
    if (apart < least) least = apart, owner[row] = i;
  }
}
// The six launches per centroid of the balanced pattern.
__global__ void column_of(const float* rows, const float* centroid, float* column) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  column[row] = distance(rows, centroid, row);
}
__global__ void mask(float* column, const bool* taken) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (taken[row]) column[row] = 1e30F;
}
__global__ void reset(unsigned long long* best) {
  *best = ~0ULL;
}
__global__ void find_least(const float* column, unsigned long long* best) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const unsigned long long key = static_cast<unsigned long long>(__float_as_uint(column[row]))
                                     << 32U |
                                 static_cast<unsigned>(row);
  atomicMin(best, key);
}
__global__ void assign(const unsigned long long* best, int* owner, int number) {
  owner[static_cast<unsigned>(*best)] = number;
}
__global__ void take(const unsigned long long* best, bool* taken) {
  taken[static_cast<unsigned>(*best)] = true;
}

struct Work {
  int k;
  int live;
  long launches = 0;  // of one step
  float* rows = nullptr;
  float* centroids = nullptr;
  float* column = nullptr;
  int* owner = nullptr;
  bool* taken = nullptr;
  unsigned long long* best = nullptr;
  std::vector<void*> blocks;

  Work(int centroids_of_stage, int live_blocks) : k(centroids_of_stage), live(live_blocks) {
    check(cudaMalloc(&rows, sizeof(float) * kRows * kWidth), "cudaMalloc");
    check(cudaMalloc(&centroids, sizeof(float) * static_cast<size_t>(k) * kWidth), "cudaMalloc");
    check(cudaMalloc(&column, sizeof(float) * kRows), "cudaMalloc");
    check(cudaMalloc(&owner, sizeof(int) * kRows), "cudaMalloc");
    check(cudaMalloc(&taken, kRows), "cudaMalloc");
    check(cudaMalloc(&best, sizeof *best), "cudaMalloc");
    fill<<<(kRows * kWidth + 255) / 256, 256>>>(rows, kRows * kWidth, 1);
    fill<<<(k * kWidth + 255) / 256, 256>>>(centroids, k * kWidth, 2);
    check(cudaDeviceSynchronize(), "the first kernels");
  }
  void launch() {
    launches = 100'000;
    for (long i = 0; i < launches; ++i) add_one<<<1, 16>>>(column);
  }
  void argmin() {
    launches = kStages;
    for (int i = 0; i < kStages; ++i) nearest<<<kRows / 256, 256>>>(rows, centroids, k, owner);
  }
  void balanced() {
    launches = 6L * k * kStages;
    for (int stage = 0; stage < kStages; ++stage) {
      check(cudaMemsetAsync(taken, 0, kRows), "cudaMemset");
      for (int i = 0; i < k; ++i) {
        column_of<<<kRows / 256, 256>>>(rows, centroids + i * kWidth, column);
        mask<<<kRows / 256, 256>>>(column, taken);
        reset<<<1, 1>>>(best);
        find_least<<<kRows / 256, 256>>>(column, best);
        assign<<<1, 1>>>(best, owner, i);
        take<<<1, 1>>>(best, taken);
      }
    }
  }
  // A thousand blocks out of many live ones, freed and allocated again.
  void churn() {
    while (static_cast<int>(blocks.size()) < live) {
      blocks.push_back(nullptr);
      check(cudaMalloc(&blocks.back(), 1024), "cudaMalloc");
    }
    launches = std::min(1000, live);
    for (long i = 0; i < launches; ++i) {
      void*& block = blocks[static_cast<size_t>(i * 7919) % blocks.size()];
      check(cudaFree(block), "cudaFree");
      check(cudaMalloc(&block, 1024), "cudaMalloc");
    }
  }
};

double now_ms() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) {
    std::fputs("patterns launch|argmin|balanced|churn [SECONDS] [K] [LIVE]\n", stderr);
    return 64;
  }
  const double seconds = count > 2 ? std::atof(words[2]) : 5;
  Work work(count > 3 ? std::atoi(words[3]) : 8192, count > 4 ? std::atoi(words[4]) : 50'000);
  void (Work::*step)() = std::strcmp(words[1], "launch") == 0     ? &Work::launch
                         : std::strcmp(words[1], "argmin") == 0   ? &Work::argmin
                         : std::strcmp(words[1], "balanced") == 0 ? &Work::balanced
                                                                  : &Work::churn;
  std::vector<double> times;
  for (const double end = now_ms() + 1e3 * seconds; times.size() < 3 || now_ms() < end;) {
    const double begun = now_ms();
    (work.*step)();
    check(cudaDeviceSynchronize(), words[1]);
    times.push_back(now_ms() - begun);
  }
  times.erase(times.begin());
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  std::printf(
      "{\"pattern\": \"%s\", \"ms_per_step\": %.6f, \"least_ms\": %.6f, "
      "\"ns_per_launch\": %.2f, \"steps\": %zu}\n",
      words[1], median, times[0], 1e6 * median / static_cast<double>(work.launches), times.size());
  return 0;
}
