#include "observe/shim/gpu/testing/simulation.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <deque>

#include "observe/shim/gpu/lookup/driver.h"
#include "observe/shim/gpu/pace/lanes.h"
#include "observe/shim/gpu/pace/pace.h"
#include "observe/shim/gpu/pace/paced.h"
#include "observe/shim/gpu/pace/turns.h"
#include "observe/shim/gpu/region/region.h"

extern "C" {
ASSAY_HIDDEN __thread assay::wire::GpuBlock* assay_gpu_block
    __attribute__((tls_model("initial-exec"))) = nullptr;
}

namespace assay::gpu {

constinit Helpers helpers{};
constinit std::atomic<bool> pacing{true};

namespace testing {
namespace {

constexpr std::uint64_t kNever = ~std::uint64_t{0};
constexpr std::uint64_t kSecond = 1'000'000'000;
// Start-up, not counted: programs start, and costs are learnt.
constexpr std::uint64_t kWarmUp = 300'000'000;
constexpr std::uint64_t kBegin = 1'000 * kSecond;

template <typename T>
class Mapped {
 public:
  Mapped()
      : memory_(static_cast<T*>(::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  ~Mapped() { ::munmap(memory_, sizeof(T)); }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  T& operator*() { return *memory_; }
  T* operator->() { return memory_; }

 private:
  T* memory_;
};

struct Event {
  std::uint64_t done = 0;
};
struct Item {
  std::uint64_t left_ns;
  std::uint64_t work_ns;  // counted as the program's work
  bool copy_engine;
  Event* event;
};

struct Process {
  Mapped<wire::GpuRegion> region;
  wire::GpuBlock* block = nullptr;
  ucontext_t context{};
  std::vector<char> stack = std::vector<char>(256 << 10U);
  std::uint64_t at = 0;             // when it continues
  const void* sleeps_on = nullptr;  // a futex
  bool is_over = false;
  bool limited = false;
  std::deque<Item> queue;
  std::vector<double> done;
};

class Machine {
 public:
  Machine(const std::vector<Simulated>& programs, int windows, const SimulatedCosts& costs);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  std::vector<std::vector<double>> run();

  [[nodiscard]] std::uint64_t now() const { return now_; }
  Process& current() { return *current_; }
  [[nodiscard]] std::size_t number() const { return number_; }
  GpuTurns& turns() { return *turns_; }
  [[nodiscard]] const SimulatedCosts& costs() const { return costs_; }

  void spend(std::uint64_t ns) { sleep_until(now_ + ns); }
  void sleep_until(std::uint64_t at) {
    current_->at = at;
    ::swapcontext(&current_->context, &scheduler_);
  }
  void sleep_on(const void* futex, std::uint64_t ns) {
    current_->sleeps_on = futex;
    sleep_until(now_ + ns + costs_.late_ns);
    current_->sleeps_on = nullptr;
  }
  void wake(const void* futex) {
    for (const auto& process : processes_) {
      if (process->sleeps_on == futex) process->at = std::min(process->at, now_ + costs_.wake_ns);
    }
  }
  void submit(std::uint64_t ns, bool copy_engine, std::uint64_t work, Event* event) {
    while (current_->queue.size() > kQueue) spend(100'000);
    current_->queue.push_back({ns, work, copy_engine, event});
  }
  [[nodiscard]] bool is_over() const { return now_ >= end_; }

 private:
  static constexpr std::size_t kQueue = 1'000;
  static void enter();
  // The process that has the multiprocessors; null: none.
  Process* scheduled();
  void advance(std::uint64_t to);
  void finish(Process& process);

  SimulatedCosts costs_;
  std::vector<Simulated> programs_;
  std::vector<std::unique_ptr<Process>> processes_;
  Mapped<GpuTurns> turns_;
  ucontext_t scheduler_{};
  Process* current_ = nullptr;
  std::size_t number_ = 0;
  std::uint64_t now_ = kBegin;
  std::uint64_t end_;
  std::size_t on_device_ = 0;
  std::uint64_t slice_end_ = 0;
  std::uint64_t switched_ = 0;  // the multiprocessors are idle until then
};

Machine* machine = nullptr;

class SimulatedProgram final : public Program {
 public:
  explicit SimulatedProgram(std::uint64_t number) : number_(number) {}

  void kernel(std::uint64_t function, std::uint64_t ns, bool by_grid) override {
    const auto* address = reinterpret_cast<const void*>((number_ + 1) * 0x10000 + function * 0x40);
    launch(cost_place(address, by_grid ? static_cast<std::uint32_t>(ns) : 1, 1, 1), 0, ns, false);
  }
  void graph(std::uint64_t executable, std::uint64_t ns) override { kernel(executable, ns, false); }
  void copy(CopyKind kind, std::uint64_t bytes) override {
    const bool bus = kind == CopyKind::kToDevice || kind == CopyKind::kToHost;
    // 2.4 TB/s and twice that for memsets; 50 GB/s.
    const std::uint64_t ns =
        1'500 + (bus ? bytes / 50 : bytes * 10 / (kind == CopyKind::kSet ? 48'000 : 24'000));
    launch(copy_place(kind, bytes), assumed_copy_ns(kind, bytes), ns, bus);
  }
  void synchronize() override {
    const std::uint64_t begun = machine->now();
    machine->spend(1'000);
    while (!machine->current().queue.empty()) machine->spend(3'000);
    if (machine->current().limited) after_wait(begun, true);
  }
  void poll() override {
    while (!machine->current().queue.empty()) machine->spend(3'000);
  }
  void compute(std::uint64_t ns) override { machine->spend(ns); }

 private:
  void launch(std::uint32_t place, std::uint64_t assumed, std::uint64_t ns, bool copy_engine) {
    const auto call = [&] {
      machine->spend(machine->costs().launch_ns);
      machine->submit(ns, copy_engine, ns, nullptr);
      return 0;
    };
    if (machine->current().limited) {
      paced({place, nullptr, false, assumed}, call);
    } else {
      call();
    }
  }
  std::uint64_t number_;
};

Result record(void* event, void*) {
  machine->spend(machine->costs().record_ns);
  auto* of = static_cast<Event*>(event);
  of->done = 0;
  machine->submit(machine->costs().event_ns, false, 0, of);
  return 0;
}

void Machine::enter() {
  Machine& the = *machine;
  const std::size_t number = the.number_;
  SimulatedProgram program(number);
  while (!the.is_over()) the.programs_[number].body(program);
  the.processes_[number]->is_over = true;
  the.sleep_until(kNever);
}

Machine::Machine(const std::vector<Simulated>& programs, int windows, const SimulatedCosts& costs)
    : costs_(costs),
      programs_(programs),
      end_(kBegin + kWarmUp + static_cast<std::uint64_t>(windows) * kSecond) {
  machine = this;
  forget_costs();
  forget_lanes();  // of the previous simulated machine
  helpers = {};
  helpers.current_context = [](void** context) {
    *context = reinterpret_cast<void*>(machine->number() + 1);
    return 0;
  };
  helpers.context_id = [](void* context, unsigned long long* id) {
    *id = reinterpret_cast<std::uintptr_t>(context);
    return 0;
  };
  helpers.current_device = [](int* device) { return *device = 0; };
  helpers.device_uuid = [](unsigned char* uuid, int) {
    std::fill(uuid, uuid + 16, static_cast<unsigned char>(7));
    return 0;
  };
  helpers.event_create = [](void** event, unsigned) {
    *event = new Event;  // as the library does, they are never destroyed
    return 0;
  };
  helpers.event_record = helpers.event_record_ptsz = record;
  helpers.event_query = [](void* event) {
    machine->spend(machine->costs().query_ns);
    return static_cast<Event*>(event)->done == 0 ? 600 : 0;
  };
  helpers.event_elapsed = [](float* milliseconds, void* from, void* to) {
    const auto between =
        static_cast<std::int64_t>(static_cast<Event*>(to)->done - static_cast<Event*>(from)->done);
    *milliseconds = static_cast<float>(static_cast<double>(between) / 1e6);
    return 0;
  };
  helpers.is_capturing =
      helpers.is_capturing_per_thread = [](void*, int* status) { return *status = 0; };
  for (const Simulated& program : programs_) {
    auto process = std::make_unique<Process>();
    wire::GpuHeader& header = process->region->header;
    header.run = 100 + processes_.size();
    header.limits.share = program.share;
    header.limits.borrow = program.borrow ? 1 : 2;
    process->block = &process->region->blocks[0];
    process->region->slots[0].blocks = 1;
    process->limited = program.share != 0;
    process->done.resize(static_cast<std::size_t>(windows));
    process->at = kBegin + processes_.size() * 300'000;
    ::getcontext(&process->context);
    process->context.uc_stack = {process->stack.data(), 0, process->stack.size()};
    ::makecontext(&process->context, enter, 0);
    processes_.push_back(std::move(process));
  }
}

Machine::~Machine() {
  machine = nullptr;
}

std::vector<std::vector<double>> Machine::run() {
  for (;;) {
    std::size_t next = 0;
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      if (processes_[i]->at < processes_[next]->at) next = i;
    }
    if (processes_[next]->at >= end_) break;
    advance(processes_[next]->at);
    number_ = next;
    current_ = processes_[next].get();
    assay_gpu_block = current_->block;
    ::swapcontext(&scheduler_, &current_->context);
  }
  advance(end_);
  std::vector<std::vector<double>> done;
  for (const auto& process : processes_) done.push_back(process->done);
  return done;
}

void Machine::finish(Process& process) {
  const Item& item = process.queue.front();
  if (now_ >= kBegin + kWarmUp) {
    const auto window = static_cast<std::size_t>((now_ - kBegin - kWarmUp) / kSecond);
    if (window < process.done.size()) process.done[window] += static_cast<double>(item.work_ns);
  }
  if (item.event != nullptr) item.event->done = now_;
  process.queue.pop_front();
}

Process* Machine::scheduled() {
  const auto wants = [&](std::size_t i) {
    const Process& process = *processes_[i];
    return !process.queue.empty() && !process.queue.front().copy_engine;
  };
  if (wants(on_device_) && now_ < slice_end_) return processes_[on_device_].get();
  for (std::size_t i = 1; i <= processes_.size(); ++i) {
    const std::size_t next = (on_device_ + i) % processes_.size();
    if (!wants(next)) continue;
    if (next != on_device_) switched_ = now_ + costs_.switch_ns;
    on_device_ = next;
    slice_end_ = std::max(now_, switched_) + costs_.slice_ns;
    return processes_[next].get();
  }
  return nullptr;
}

void Machine::advance(std::uint64_t to) {
  while (now_ < to) {
    Process* running = scheduled();
    std::uint64_t step = to - now_;
    const bool switching = now_ < switched_;
    if (switching) step = std::min(step, switched_ - now_);
    if (running != nullptr && !switching) {
      step = std::min({step, running->queue.front().left_ns, slice_end_ - now_});
    }
    const auto copies = [](const Process& process) {
      return !process.queue.empty() && process.queue.front().copy_engine;
    };
    for (const auto& process : processes_) {
      if (copies(*process)) step = std::min(step, process->queue.front().left_ns);
    }
    now_ += step;
    for (const auto& process : processes_) {
      const bool runs = copies(*process) || (process.get() == running && !switching);
      if (!runs) continue;
      process->queue.front().left_ns -= step;
      if (process->queue.front().left_ns == 0) finish(*process);
    }
  }
}

}  // namespace

std::vector<std::vector<double>> simulate(const std::vector<Simulated>& programs, int windows,
                                          const SimulatedCosts& costs) {
  Machine simulated(programs, windows, costs);
  return simulated.run();
}

}  // namespace testing

// The functions of the library that pace.cc calls.

wire::GpuRegion* region() {
  return testing::machine == nullptr ? nullptr : &*testing::machine->current().region;
}
int slot() {
  return 0;
}
wire::GpuBlock& block_of_thread() {
  return *assay_gpu_block;
}
void limits_changed() {
  seen_generation = region()->header.generation.load();
}
constinit const Hooks hooks = {.limits_changed = limits_changed};
void log_line(const char*) {}

GpuTurns* turns() {
  return &testing::machine->turns();
}
TurnProcess& own_place(TurnRun& run) {
  return join_run(run, 1000 + testing::machine->number(), 1, is_process_alive);
}
bool is_process_alive(const TurnProcess&) {
  return true;
}
std::uint64_t now_ns() {
  return testing::machine->now();
}
void sleep_for(TurnDevice& device, std::uint32_t seen, std::uint64_t ns) {
  if (device.ended.load() == seen) testing::machine->sleep_on(&device.ended, ns);
}
void spin_briefly() {
  testing::machine->spend(2'000);
}
void wake_waiters(TurnDevice& device) {
  testing::machine->wake(&device.ended);
}

}  // namespace assay::gpu
