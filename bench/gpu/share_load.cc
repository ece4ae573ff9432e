// A program that keeps a GPU busy and prints how much work it finished, for bench/gpu/shares and
// bench/gpu/share_mixtures:
//
//   gpu_share_load calibrate          prints iterations of the kernel per microsecond
//   gpu_share_load KIND RATE BEGIN WINDOWS LENGTH…
//       repeats work of these lengths from the time BEGIN on (CLOCK_MONOTONIC, milliseconds), and
//       prints for each second how much was finished in it, by the GPU's clock; then when the first
//       was, after BEGIN; then `host_ns` with the median time from one launch to the next in each
//       second (alone, then with others), which is the host's speed. KIND, and what LENGTH is:
//         plain, wide, cooperative, graph, sync, onegrid    kernels, microseconds; wide: on all SMs
//         host:N           kernels, with N microseconds of host time for each launch
//         copy, copy2d, set, todevice, tohost               MiB
//         mixed, mixedgraph    a kernel, a copy on the device and a memset in turn, or as a graph;
//                              MiB and microseconds
//
//   --alone TIME    also runs for two seconds from TIME on, before BEGIN, and prints `alone WORK`
//                   for each: the same process is measured alone and next to others
//   --library FILE [--share THOUSANDTHS] [--priority 1|2|3] [--borrow] [--from TIME]
//       before KIND: runs under the library with its own region, as `assay run` does; limits hold
//       from TIME on. `exec PROGRAM…` in place of KIND runs another program there
//
// It finds the driver by itself and brings its kernel as PTX, so it needs no CUDA to be built. On
// the fake driver (RATE 0) a kernel takes as long as its grid is wide, or its block deep.
#include <dlfcn.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "observe/wire/gpu_region.h"

namespace {

// A chain of additions and multiplications that compilers cannot shorten. One thread is enough:
// processes take turns on a GPU as a whole.
constexpr const char* kProgram = R"(
.version 6.3
.target sm_75
.address_size 64
.visible .entry spin(.param .u64 out, .param .u32 times)
{
  .reg .pred %p;
  .reg .u32 %r;
  .reg .u64 %out;
  .reg .f32 %f;
  ld.param.u64 %out, [out];
  ld.param.u32 %r, [times];
  mov.f32 %f, 0f3F800000;
again:
  fma.rn.f32 %f, %f, 0f3F7FFFEF, 0f3F000000;
  fma.rn.f32 %f, %f, 0f3F7FFFEF, 0f3F000000;
  fma.rn.f32 %f, %f, 0f3F7FFFEF, 0f3F000000;
  fma.rn.f32 %f, %f, 0f3F7FFFEF, 0f3F000000;
  sub.u32 %r, %r, 1;
  setp.ne.u32 %p, %r, 0;
  @%p bra again;
  setp.lt.f32 %p, %f, 0f00000000;
  @!%p bra done;
  st.global.f32 [%out], %f;
done:
  ret;
}
)";

struct Driver {
  int (*init)(unsigned);
  int (*retain)(void**, int);
  int (*set_current)(void*);
  int (*load)(void**, const void*);
  int (*get_function)(void**, void*, const char*);
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                void**, void**);
  int (*cooperative)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                     void*, void**);
  int (*stream_create)(void**, unsigned);
  int (*synchronise)(void*);
  int (*event_create)(void**, unsigned);
  int (*event_record)(void*, void*);
  int (*event_query)(void*);
  int (*event_elapsed)(float*, void*, void*);
  int (*begin_capture)(void*, int);
  int (*end_capture)(void*, void**);
  int (*instantiate)(void**, void*, std::uint64_t);
  int (*launch_graph)(void*, void*);
  int (*allocate)(std::uint64_t*, std::size_t);
  int (*allocate_host)(void**, std::size_t);
  int (*copy)(std::uint64_t, std::uint64_t, std::size_t, void*);
  int (*copy2d)(const void*, void*);
  int (*to_device)(std::uint64_t, const void*, std::size_t, void*);
  int (*to_host)(void*, std::uint64_t, std::size_t, void*);
  int (*set)(std::uint64_t, unsigned, std::size_t, void*);
};
Driver cu;

void check(int result, const char* what) {
  if (result == 0) return;
  std::fprintf(stderr, "gpu_share_load: %s: error %d of the driver\n", what, result);
  std::exit(3);
}

void find_driver() {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) {
    std::fprintf(stderr, "gpu_share_load: %s\n", ::dlerror());
    std::exit(3);
  }
  const auto find = [&](auto*& function, const char* name) {
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    if (function == nullptr) check(500, name);
  };
  find(cu.init, "cuInit");
  find(cu.retain, "cuDevicePrimaryCtxRetain");
  find(cu.set_current, "cuCtxSetCurrent");
  find(cu.load, "cuModuleLoadData");
  find(cu.get_function, "cuModuleGetFunction");
  find(cu.launch, "cuLaunchKernel");
  find(cu.cooperative, "cuLaunchCooperativeKernel");
  find(cu.stream_create, "cuStreamCreate");
  find(cu.synchronise, "cuStreamSynchronize");
  find(cu.event_create, "cuEventCreate");
  find(cu.event_record, "cuEventRecord");
  find(cu.event_query, "cuEventQuery");
  find(cu.event_elapsed, "cuEventElapsedTime");
  find(cu.begin_capture, "cuStreamBeginCapture_v2");
  find(cu.end_capture, "cuStreamEndCapture");
  find(cu.instantiate, "cuGraphInstantiateWithFlags");
  find(cu.launch_graph, "cuGraphLaunch");
  find(cu.allocate, "cuMemAlloc_v2");
  find(cu.allocate_host, "cuMemAllocHost_v2");
  find(cu.copy, "cuMemcpyDtoDAsync_v2");
  find(cu.copy2d, "cuMemcpy2DAsync_v2");
  find(cu.to_device, "cuMemcpyHtoDAsync_v2");
  find(cu.to_host, "cuMemcpyDtoHAsync_v2");
  find(cu.set, "cuMemsetD32Async");
}

struct Gpu {
  void* function = nullptr;
  void* stream = nullptr;
  std::uint64_t out = 0;

  Gpu() {
    find_driver();
    void* context = nullptr;
    void* module = nullptr;
    check(cu.init(0), "cuInit");
    check(cu.retain(&context, 0), "cuDevicePrimaryCtxRetain");
    check(cu.set_current(context), "cuCtxSetCurrent");
    check(cu.load(&module, kProgram), "cuModuleLoadData");
    check(cu.get_function(&function, module, "spin"), "cuModuleGetFunction");
    check(cu.stream_create(&stream, 1), "cuStreamCreate");
    check(cu.allocate(&out, 256), "cuMemAlloc");
  }
  void launch(unsigned grid, unsigned times, bool cooperative = false, unsigned deep = 1,
              unsigned threads = 1) {
    void* arguments[] = {&out, &times};
    check(cooperative
              ? cu.cooperative(function, grid, 1, 1, threads, 1, deep, 0, stream, arguments)
              : cu.launch(function, grid, 1, 1, threads, 1, deep, 0, stream, arguments, nullptr),
          "launch");
  }
  void wait() { check(cu.synchronise(stream), "cuStreamSynchronize"); }
};

void* new_event() {
  void* event = nullptr;
  check(cu.event_create(&event, 0), "cuEventCreate");
  return event;
}

double milliseconds(void* from, void* to) {
  float elapsed = 0;
  check(cu.event_elapsed(&elapsed, from, to), "cuEventElapsedTime");
  return static_cast<double>(elapsed);
}

double now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

int calibrate() {
  Gpu gpu;
  constexpr unsigned kTimes = 200'000;
  void* begin = new_event();
  void* end = new_event();
  double least = 1e9;
  for (int round = 0; round < 20; ++round) {
    check(cu.event_record(begin, gpu.stream), "cuEventRecord");
    gpu.launch(1, kTimes);
    check(cu.event_record(end, gpu.stream), "cuEventRecord");
    gpu.wait();
    least = std::min(least, milliseconds(begin, end));
  }
  std::printf("%.4f\n", kTimes / (least * 1e3));
  return 0;
}

// CUDA_MEMCPY2D_v2
struct Copy2d {
  std::size_t source_x, source_y;
  unsigned source_type;
  const void* source_host;
  std::uint64_t source;
  void* source_array;
  std::size_t source_pitch;
  std::size_t target_x, target_y;
  unsigned target_type;
  void* target_host;
  std::uint64_t target;
  void* target_array;
  std::size_t target_pitch;
  std::size_t width, height;
};
constexpr unsigned kOnDevice = 2;

// Two buffers of a size on the device, and one on the host.
class Buffers {
 public:
  void make(std::size_t bytes, bool host) {
    check(cu.allocate(&from_, bytes), "cuMemAlloc");
    check(cu.allocate(&to_, bytes), "cuMemAlloc");
    if (host) check(cu.allocate_host(&host_, bytes), "cuMemAllocHost");
  }
  void copy(const std::string& kind, std::size_t bytes, void* stream) const {
    if (kind == "copy2d") {
      constexpr std::size_t kWidth = 4096;
      const Copy2d all = {0,       0,      kOnDevice, nullptr,       from_,   nullptr,
                          kWidth,  0,      0,         kOnDevice,     nullptr, to_,
                          nullptr, kWidth, kWidth,    bytes / kWidth};
      check(cu.copy2d(&all, stream), "cuMemcpy2DAsync");
    } else if (kind == "set") {
      check(cu.set(to_, 1, bytes / 4, stream), "cuMemsetD32Async");
    } else if (kind == "todevice") {
      check(cu.to_device(to_, host_, bytes, stream), "cuMemcpyHtoDAsync");
    } else if (kind == "tohost") {
      check(cu.to_host(host_, from_, bytes, stream), "cuMemcpyDtoHAsync");
    } else {
      check(cu.copy(to_, from_, bytes, stream), "cuMemcpyDtoDAsync");
    }
  }

 private:
  std::uint64_t from_ = 0;
  std::uint64_t to_ = 0;
  void* host_ = nullptr;
};

struct Batch {
  void* event;
  double work_us;
};

// The median of times from one launch to the next, in steps of 20 nanoseconds.
class LaunchIntervals {
 public:
  void launched(double at_ms) {
    const double ns = (at_ms - last_ms_) * 1e6;
    last_ms_ = at_ms;
    if (ns < 0 || ns >= kStepNs * static_cast<double>(counts_.size())) return;
    ++counts_[static_cast<std::size_t>(ns / kStepNs)];
    ++total_;
  }
  [[nodiscard]] double median_ns() const {
    std::size_t below = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      below += counts_[i];
      if (2 * below > total_) return kStepNs * (static_cast<double>(i) + 0.5);
    }
    return 0;
  }

 private:
  static constexpr double kStepNs = 20;
  std::vector<std::uint32_t> counts_ = std::vector<std::uint32_t>(5000);
  std::size_t total_ = 0;
  double last_ms_ = 0;
};

class Load {
 public:
  Load(const std::string& kind, double rate, std::vector<double> lengths)
      : kind_(kind), rate_(rate), lengths_(std::move(lengths)) {
    if (kind_.starts_with("host:")) {
      host_us_ = std::atof(kind_.c_str() + 5);
      kind_ = "plain";
    }
    copies_ = kind_ == "copy" || kind_ == "copy2d" || kind_ == "set" || kind_ == "todevice" ||
              kind_ == "tohost";
    mixed_ = kind_ == "mixed" || kind_ == "mixedgraph";
    if (copies_ || mixed_) {
      std::size_t most = 0;
      for (const double length : lengths_) most = std::max(most, bytes(length));
      buffers_.make(most, kind_ == "todevice" || kind_ == "tohost");
    }
    if (kind_.ends_with("graph")) make_graph();
  }

  // Alone from one time on, in two seconds; then with the others, from another time on.
  int run(double alone, double begin, int windows) {
    std::vector<LaunchIntervals> host;
    if (alone > 0) {
      const Phase phase = run(alone, 2);
      for (const double work : phase.done) std::printf("alone %.0f\n", work);
      host = phase.host;
    }
    const Phase phase = run(begin, windows);
    for (const double work : phase.done) std::printf("%.0f\n", work);
    std::printf("first %.3f\n", phase.first_ms);
    host.insert(host.end(), phase.host.begin(), phase.host.end());
    std::printf("host_ns");
    for (const LaunchIntervals& second : host) std::printf(" %.0f", second.median_ns());
    std::printf("\n");
    return 0;
  }

 private:
  struct Phase {
    std::vector<double> done;
    double first_ms;
    std::vector<LaunchIntervals> host;
  };
  Phase run(double begin, int windows) {
    void* base = new_event();
    check(cu.event_record(base, gpu_.stream), "cuEventRecord");
    gpu_.wait();
    const double base_ms = now_ms();
    while (now_ms() < begin) ::usleep(100);
    gpu_.wait();  // a program notices new limits when it synchronizes
    const double end = begin + windows * 1000.0;
    std::vector<double> done(static_cast<std::size_t>(windows), 0.0);
    host_.assign(static_cast<std::size_t>(windows), {});
    begin_ms_ = begin;
    double first = -1;
    std::deque<Batch> queue;
    std::vector<void*> spare;
    while (now_ms() < end || !queue.empty()) {
      if (now_ms() < end && queue.size() < 64) {
        void* event = spare.empty() ? new_event() : spare.back();
        if (!spare.empty()) spare.pop_back();
        const double work = launch_some();
        check(cu.event_record(event, gpu_.stream), "cuEventRecord");
        queue.push_back({event, work});
        if (kind_ == "sync") gpu_.wait();
      }
      while (!queue.empty() && cu.event_query(queue.front().event) == 0) {
        const double at = base_ms + milliseconds(base, queue.front().event) - begin;
        if (first < 0) first = at;
        const auto window = static_cast<std::size_t>(at < 0 ? 0 : at / 1000);
        if (window < done.size()) done[window] += queue.front().work_us;
        spare.push_back(queue.front().event);
        queue.pop_front();
      }
    }
    return {done, first, host_};
  }

  static std::size_t bytes(double mebibytes) { return static_cast<std::size_t>(mebibytes) << 20U; }
  // Returns how much work it is, in about a microsecond of a large GPU's time.
  double launch_one(std::size_t number) {
    const double length = lengths_[number % lengths_.size()];
    if (copies_) {
      buffers_.copy(kind_, bytes(length), gpu_.stream);
      const bool bus = kind_ == "todevice" || kind_ == "tohost";
      return length * (bus ? 20 : 0.5);
    }
    if (mixed_) {
      const std::size_t part = number % 3;
      if (part == 1) buffers_.copy("copy", bytes(length), gpu_.stream);
      if (part == 2) buffers_.copy("set", bytes(length), gpu_.stream);
      if (part == 0) launch_kernel(length, 0);
      return length;
    }
    launch_kernel(length, number % lengths_.size());
    if (host_us_ > 0) {
      for (const double begun = now_ms(); now_ms() - begun < host_us_ / 1e3;) {
      }
    }
    return length;
  }
  void launch_kernel(double us, std::size_t number) {
    const double at = now_ms();
    const double second = (at - begin_ms_) / 1000;
    if (second >= 0 && second < static_cast<double>(host_.size())) {
      host_[static_cast<std::size_t>(second)].launched(at);
    }
    if (rate_ == 0) {
      const auto takes = static_cast<unsigned>(us);
      const bool one_grid = kind_ == "onegrid";
      gpu_.launch(one_grid ? 1 : takes, 1, kind_ == "cooperative", one_grid ? takes : 1);
      return;
    }
    const auto grid = static_cast<unsigned>(kind_ == "onegrid" ? 1 : 1 + number);
    const double times = std::max(1.0, us * rate_);
    constexpr unsigned kWide = 132;  // SMs of an H200; on others some have two blocks, or none
    const bool wide = kind_ == "wide" || mixed_;
    gpu_.launch(wide ? grid * kWide : grid, static_cast<unsigned>(times), kind_ == "cooperative", 1,
                wide ? 256 : 1);
  }
  // Some 200 microseconds of work, at least one piece.
  double launch_some() {
    if (graph_ != nullptr) {
      check(cu.launch_graph(graph_, gpu_.stream), "cuGraphLaunch");
      return graph_us_;
    }
    double work = 0;
    do {
      work += launch_one(next_++);
    } while (work < 200 && kind_ != "sync");
    return work;
  }
  void make_graph() {
    check(cu.begin_capture(gpu_.stream, 0), "cuStreamBeginCapture");
    for (std::size_t i = 0; i < 21; ++i) graph_us_ += launch_one(i);
    void* graph = nullptr;
    check(cu.end_capture(gpu_.stream, &graph), "cuStreamEndCapture");
    check(cu.instantiate(&graph_, graph, 0), "cuGraphInstantiate");
  }

  Gpu gpu_;
  std::string kind_;
  double rate_;
  std::vector<double> lengths_;
  bool copies_ = false;
  bool mixed_ = false;
  double host_us_ = 0;
  double begin_ms_ = 0;
  std::vector<LaunchIntervals> host_;
  Buffers buffers_;
  std::size_t next_ = 0;
  void* graph_ = nullptr;
  double graph_us_ = 0;
};

struct Limits {
  std::string library;
  unsigned share = 0, priority = 0, borrow = 2;
  double from = 0;  // limits hold from this time on (CLOCK_MONOTONIC, milliseconds)
};

// Begins again under the library, in a region that goes with the process.
void begin_again(const Limits& limits, double alone, char** words) {
  const int file = ::memfd_create("assay-gpu-shares", 0);
  if (file < 0 || !assay::wire::make_gpu_region(file)) std::exit(3);
  void* memory =
      ::mmap(nullptr, sizeof(assay::wire::GpuRegion), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) std::exit(3);
  assay::wire::GpuHeader& header = static_cast<assay::wire::GpuRegion*>(memory)->header;
  const auto set_limits = [&] {
    header.limits.share = limits.share;
    header.limits.priority = limits.priority;
    header.limits.borrow = limits.borrow;
    header.generation.fetch_add(1);
  };
  if (limits.from == 0) {
    set_limits();
  } else if (::fork() == 0) {
    ::close(STDOUT_FILENO);
    ::close(STDERR_FILENO);
    while (now_ms() < limits.from) ::usleep(1000);
    set_limits();
    ::_exit(0);
  }
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  ::setenv(assay::wire::kGpuRegionVariable, path.c_str(), 1);
  ::setenv("LD_PRELOAD", limits.library.c_str(), 1);
  if (std::strcmp(*words, "exec") == 0) {
    ::execvp(words[1], words + 1);
    std::exit(3);
  }
  std::string from = std::to_string(alone);
  std::vector<char*> next = {const_cast<char*>("gpu_share_load"), const_cast<char*>("--alone"),
                             from.data()};
  for (; *words != nullptr; ++words) next.push_back(*words);
  next.push_back(nullptr);
  ::execv("/proc/self/exe", next.data());
  std::exit(3);
}

}  // namespace

int main(int count, char** words) {
  Limits limits;
  double alone = 0;
  int at = 1;
  for (; at < count && std::strncmp(words[at], "--", 2) == 0; ++at) {
    const std::string option = words[at];
    if (option == "--borrow") limits.borrow = 1;
    if (option == "--borrow" || at + 1 == count) continue;
    const char* value = words[++at];
    if (option == "--library") limits.library = value;
    if (option == "--from") limits.from = std::atof(value);
    if (option == "--alone") alone = std::atof(value);
    if (option == "--share") limits.share = static_cast<unsigned>(std::atoi(value));
    if (option == "--priority") limits.priority = static_cast<unsigned>(std::atoi(value));
  }
  if (!limits.library.empty()) begin_again(limits, alone, words + at);
  const std::vector<std::string> rest(words + at, words + count);
  if (rest.size() == 1 && rest[0] == "calibrate") return calibrate();
  if (rest.size() < 5) {
    std::fprintf(stderr, "gpu_share_load: calibrate, or KIND RATE BEGIN WINDOWS LENGTH…\n");
    return 64;
  }
  std::vector<double> lengths;
  for (std::size_t i = 4; i < rest.size(); ++i) lengths.push_back(std::atof(rest[i].c_str()));
  return Load(rest[0], std::atof(rest[1].c_str()), lengths)
      .run(alone, std::atof(rest[2].c_str()), std::atoi(rest[3].c_str()));
}
