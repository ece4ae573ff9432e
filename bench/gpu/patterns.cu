// Patterns of GPU work that show what a library between a program and the driver costs, on the CUDA
// runtime and without a framework's own time: see patterns.py for what they are.
//
//   gpu_patterns launch|argmin|balanced|allreduce|combined|churn [--seconds 5] [--k 8192]
//                [--live 50000] [--ranks 2]
//
// The last line is JSON: the median and least milliseconds per step, nanoseconds per launch (churn:
// per allocation and free together), steps. allreduce and combined are --ranks processes on one
// GPU, which NCCL takes for as many hosts; its library is loaded only for these.
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
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

// NCCL's few functions that are needed, by their public signatures.
struct Nccl {
  struct Id {
    char bytes[128];
  };
  int (*new_id)(Id*) = nullptr;
  int (*join)(void**, int, Id, int) = nullptr;
  int (*all_reduce)(const void*, void*, size_t, int, int, void*, cudaStream_t) = nullptr;
  void* communicator = nullptr;

  void load() {
    void* library = dlopen("libnccl.so.2", RTLD_NOW);
    if (library == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      std::exit(1);
    }
    new_id = reinterpret_cast<int (*)(Id*)>(dlsym(library, "ncclGetUniqueId"));
    join = reinterpret_cast<int (*)(void**, int, Id, int)>(dlsym(library, "ncclCommInitRank"));
    all_reduce =
        reinterpret_cast<int (*)(const void*, void*, size_t, int, int, void*, cudaStream_t)>(
            dlsym(library, "ncclAllReduce"));
  }
  void sum(float* of, size_t count) {
    constexpr int kFloat = 7;
    constexpr int kSum = 0;
    if (all_reduce(of, of, count, kFloat, kSum, communicator, nullptr) != 0) {
      std::fputs("ncclAllReduce failed\n", stderr);
      std::exit(1);
    }
  }
};
Nccl nccl;

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
  // What a step of two ranks exchanges: two sums per stage.
  void exchange(int times) {
    for (int i = 0; i < times * kStages; ++i) {
      nccl.sum(column, kRows);
      nccl.sum(centroids, static_cast<size_t>(k) * kWidth);
    }
    launches += 2L * times * kStages;
  }
  void allreduce() {
    launches = 0;
    exchange(100);
  }
  void combined() {
    balanced();
    exchange(1);
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

struct Options {
  std::string pattern;
  double seconds = 5;
  int k = 8192;
  int live = 50'000;
  int ranks = 2;
};

using Step = void (Work::*)();
Step step_of(const std::string& pattern) {
  struct {
    const char* name;
    Step step;
  } const kSteps[] = {{"launch", &Work::launch},     {"argmin", &Work::argmin},
                      {"balanced", &Work::balanced}, {"allreduce", &Work::allreduce},
                      {"combined", &Work::combined}, {"churn", &Work::churn}};
  for (const auto& known : kSteps) {
    if (pattern == known.name) return known.step;
  }
  return nullptr;
}

// Ranks stop together: one rank's decision is summed over all.
bool all_go_on(Work& work, bool go_on, int ranks) {
  if (ranks == 1) return go_on;
  float stopped = go_on ? 0 : 1;
  check(cudaMemcpy(work.column, &stopped, sizeof stopped, cudaMemcpyHostToDevice), "cudaMemcpy");
  nccl.sum(work.column, 1);
  check(cudaMemcpy(&stopped, work.column, sizeof stopped, cudaMemcpyDeviceToHost), "cudaMemcpy");
  return stopped == 0;
}

int measure(const Options& options, int rank, const Nccl::Id& id) {
  const Step step = step_of(options.pattern);
  Work work(options.k, options.live);
  if (options.ranks > 1 && nccl.join(&nccl.communicator, options.ranks, id, rank) != 0) {
    std::fputs("ncclCommInitRank failed\n", stderr);
    return 1;
  }
  std::vector<double> times;
  const double end = now_ms() + 1e3 * options.seconds;
  do {
    const double begun = now_ms();
    (work.*step)();
    check(cudaDeviceSynchronize(), options.pattern.c_str());
    times.push_back(now_ms() - begun);
  } while (all_go_on(work, times.size() < 3 || now_ms() < end, options.ranks));
  times.erase(times.begin());
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  if (rank != 0) return 0;
  std::printf(
      "{\"pattern\": \"%s\", \"ms_per_step\": %.6f, \"least_ms\": %.6f, "
      "\"ns_per_launch\": %.2f, \"steps\": %zu}\n",
      options.pattern.c_str(), median, times[0], 1e6 * median / static_cast<double>(work.launches),
      times.size());
  return 0;
}

// A process for each rank, before any of them touches the GPU. The first makes the id for all.
int measure_ranks(const Options& options) {
  nccl.load();
  setenv("NCCL_SOCKET_IFNAME", "lo", 0);
  setenv("NCCL_NVLS_ENABLE", "0", 0);
  std::vector<std::vector<int>> pipes(static_cast<size_t>(options.ranks), std::vector<int>(2));
  for (auto& ends : pipes) {
    if (pipe(ends.data()) != 0) return 1;
  }
  std::vector<pid_t> children;
  for (int rank = 0; rank < options.ranks; ++rank) {
    const pid_t child = fork();
    if (child != 0) {
      children.push_back(child);
      continue;
    }
    setenv("NCCL_HOSTID", ("host" + std::to_string(rank)).c_str(), 1);
    Nccl::Id id{};
    if (rank == 0) {
      if (nccl.new_id(&id) != 0) _exit(1);
      for (size_t other = 1; other < pipes.size(); ++other) {
        if (write(pipes[other][1], &id, sizeof id) != static_cast<ssize_t>(sizeof id)) _exit(1);
      }
    } else if (read(pipes[static_cast<size_t>(rank)][0], &id, sizeof id) !=
               static_cast<ssize_t>(sizeof id)) {
      _exit(1);
    }
    const int result = measure(options, rank, id);
    std::fflush(stdout);
    _exit(result);
  }
  int worst = 0;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    worst |= status;
  }
  return worst == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  Options options;
  options.pattern = count > 1 ? words[1] : "";
  bool known = step_of(options.pattern) != nullptr && count % 2 == 0;
  for (int i = 2; known && i + 1 < count; i += 2) {
    const std::string name = words[i];
    const double value = std::atof(words[i + 1]);
    known = value > 0;
    if (name == "--seconds") {
      options.seconds = value;
    } else if (name == "--k") {
      options.k = static_cast<int>(value);
    } else if (name == "--live") {
      options.live = static_cast<int>(value);
    } else if (name == "--ranks") {
      options.ranks = static_cast<int>(value);
    } else {
      known = false;
    }
  }
  if (!known) {
    std::fputs(
        "gpu_patterns launch|argmin|balanced|allreduce|combined|churn [--seconds S] [--k K] "
        "[--live BLOCKS] [--ranks N]\n",
        stderr);
    return 64;
  }
  if (options.pattern == "allreduce" || options.pattern == "combined")
    return measure_ranks(options);
  options.ranks = 1;
  return measure(options, 0, {});
}
