// A program that keeps a GPU busy and says how much it has had done, for bench/gpu/shares:
//
//   gpu_share_load calibrate                          prints iterations of the kernel per
//   microsecond gpu_share_load KIND RATE BEGIN WINDOWS LENGTH…    KIND: plain, cooperative, graph,
//   sync or onegrid
//       launches kernels of these lengths (microseconds) in turn, from the time BEGIN on
//       (CLOCK_MONOTONIC, milliseconds), and prints for each second how many microseconds of work
//       were finished in it, by the GPU's clock; then when the first one was, after BEGIN
//
//   --library FILE [--share THOUSANDTHS] [--priority 1|2|3] [--borrow]   before KIND: under the
//       library, in a region of its own, as `assay run` would do it
//
// It finds the driver by itself and brings its kernel as PTX, so it needs no CUDA to be built. On
// the fake driver (RATE 0) a kernel takes as long as its grid is wide, or its block deep.
#include <dlfcn.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "observe/wire/gpu_region.h"

namespace {

// A chain of additions and multiplications that nobody can shorten. One thread does: processes
// take turns on a GPU as a whole.
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
  void launch(unsigned grid, unsigned times, bool cooperative = false, unsigned deep = 1) {
    void* arguments[] = {&out, &times};
    check(cooperative ? cu.cooperative(function, grid, 1, 1, 1, 1, deep, 0, stream, arguments)
                      : cu.launch(function, grid, 1, 1, 1, 1, deep, 0, stream, arguments, nullptr),
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

struct Batch {
  void* event;
  double work_us;
};

class Load {
 public:
  Load(const std::string& kind, double rate, std::vector<double> lengths)
      : kind_(kind), rate_(rate), lengths_(std::move(lengths)) {
    if (kind_ == "graph") make_graph();
  }

  int run(double begin, int windows) {
    void* base = new_event();
    check(cu.event_record(base, gpu_.stream), "cuEventRecord");
    gpu_.wait();
    const double base_ms = now_ms();
    while (now_ms() < begin) {
    }
    const double end = begin + windows * 1000.0;
    std::vector<double> done(static_cast<std::size_t>(windows), 0.0);
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
    for (const double work : done) std::printf("%.0f\n", work);
    std::printf("first %.3f\n", first);
    return 0;
  }

 private:
  void launch_one(double us, std::size_t number) {
    if (rate_ == 0) {
      const auto takes = static_cast<unsigned>(us);
      const bool one_grid = kind_ == "onegrid";
      gpu_.launch(one_grid ? 1 : takes, 1, kind_ == "cooperative", one_grid ? takes : 1);
      return;
    }
    const auto wide = static_cast<unsigned>(kind_ == "onegrid" ? 1 : 1 + number);
    const double times = us * rate_;
    gpu_.launch(wide, times < 1 ? 1U : static_cast<unsigned>(times), kind_ == "cooperative");
  }
  // Some 200 microseconds of work, at least one kernel.
  double launch_some() {
    if (kind_ == "graph") {
      check(cu.launch_graph(graph_, gpu_.stream), "cuGraphLaunch");
      return graph_us_;
    }
    double work = 0;
    do {
      const std::size_t number = next_++ % lengths_.size();
      launch_one(lengths_[number], number);
      work += lengths_[number];
    } while (work < 200 && kind_ != "sync");
    return work;
  }
  void make_graph() {
    check(cu.begin_capture(gpu_.stream, 0), "cuStreamBeginCapture");
    for (int i = 0; i < 20; ++i) {
      const std::size_t number = static_cast<std::size_t>(i) % lengths_.size();
      launch_one(lengths_[number], number);
      graph_us_ += lengths_[number];
    }
    void* graph = nullptr;
    check(cu.end_capture(gpu_.stream, &graph), "cuStreamEndCapture");
    check(cu.instantiate(&graph_, graph, 0), "cuGraphInstantiate");
  }

  Gpu gpu_;
  std::string kind_;
  double rate_;
  std::vector<double> lengths_;
  std::size_t next_ = 0;
  void* graph_ = nullptr;
  double graph_us_ = 0;
};

struct Limits {
  std::string library;
  unsigned share = 0, priority = 0, borrow = 2;
};

// Begins again under the library, in a region that goes with the process.
void begin_again(const Limits& limits, char** words) {
  const int file = ::memfd_create("assay-gpu-shares", 0);
  if (file < 0 || !assay::wire::make_gpu_region(file)) std::exit(3);
  void* memory =
      ::mmap(nullptr, sizeof(assay::wire::GpuRegion), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) std::exit(3);
  assay::wire::GpuLimits& of = static_cast<assay::wire::GpuRegion*>(memory)->header.limits;
  of.share = limits.share;
  of.priority = limits.priority;
  of.borrow = limits.borrow;
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  ::setenv(assay::wire::kGpuRegionVariable, path.c_str(), 1);
  ::setenv("LD_PRELOAD", limits.library.c_str(), 1);
  std::vector<char*> next = {const_cast<char*>("gpu_share_load")};
  for (; *words != nullptr; ++words) next.push_back(*words);
  next.push_back(nullptr);
  ::execv("/proc/self/exe", next.data());
  std::exit(3);
}

}  // namespace

int main(int count, char** words) {
  Limits limits;
  int at = 1;
  for (; at < count && std::strncmp(words[at], "--", 2) == 0; ++at) {
    const std::string option = words[at];
    if (option == "--borrow") limits.borrow = 1;
    if (option == "--borrow" || at + 1 == count) continue;
    const char* value = words[++at];
    if (option == "--library") limits.library = value;
    if (option == "--share") limits.share = static_cast<unsigned>(std::atoi(value));
    if (option == "--priority") limits.priority = static_cast<unsigned>(std::atoi(value));
  }
  if (!limits.library.empty()) begin_again(limits, words + at);
  const std::vector<std::string> rest(words + at, words + count);
  if (rest.size() == 1 && rest[0] == "calibrate") return calibrate();
  if (rest.size() < 5) {
    std::fprintf(stderr, "gpu_share_load: calibrate, or KIND RATE BEGIN WINDOWS LENGTH…\n");
    return 64;
  }
  std::vector<double> lengths;
  for (std::size_t i = 4; i < rest.size(); ++i) lengths.push_back(std::atof(rest[i].c_str()));
  return Load(rest[0], std::atof(rest[1].c_str()), lengths)
      .run(std::atof(rest[2].c_str()), std::atoi(rest[3].c_str()));
}
