// What a layout costs on one GPU: the same step by one rank, and by several ranks that are threads
// on the same device, in turns.
//
//   train_ranks_bench PRESET [--set KEY=VALUE]… [--rounds N] [--steps N] [--tuning FILE]
//                     [--timeline 1|FILE] [--copies beside|driver] [--windows 1]
//
// PRESET is a job; the layout is what --set says (layout.fsdp=4), batch.accumulate is a rank's. One
// rank has as many micro-batches as all ranks together. Prints tokens per second of both, and the
// ratio; and memory of a rank, planned and by storage. With --timeline, one more step of all ranks
// is recorded on the device's clock: how much of the copies between ranks runs beside kernels, and
// every kernel and copy in FILE;
// --copies says who makes them (comm::Copying). With --windows nothing is run: for each kind of
// exchange in the list of rank 0, what is computed between its issue and the wait for it, at least.
#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#ifdef ASSAY_CUPTI
#include "gpu_timeline.h"
#endif

#include "base/error.h"
#include "base/file.h"
#include "base/statistics.h"
#include "base/units.h"
#include "comm/cuda/one_gpu.h"
#include "comm/local.h"
#include "spec/load.h"
#include "step/testing/exchange_windows.h"
#include "train/cuda/cuda_backend.h"

namespace {

using namespace assay;
using Clock = std::chrono::steady_clock;

struct Setup {
  spec::JobSpec job;
  std::int64_t steps = 5;
  std::int64_t rounds = 3;
  std::string tuning;
  std::string timeline;
  comm::Copying copying = comm::Copying::kBesideKernels;
};

base::Result<comm::Copying> copying_of(const std::string& name) {
  if (name == "beside") return comm::Copying::kBesideKernels;
  if (name == "driver") return comm::Copying::kByDriver;
  return base::fail(base::usage_error("--copies", fmt::format("'{}' is no way to copy", name),
                                      "beside or driver"));
}

base::Result<step::Program> program_of(const Setup& setup, const step::Layout& layout,
                                       std::int64_t accumulate) {
  step::Choices choices = step::choices_of(setup.job);
  choices.layout = layout;
  choices.accumulate = accumulate;
  if (choices.recompute == spec::Recompute::kAuto) choices.recompute = spec::Recompute::kCheap;
  return step::build(setup.job.model, choices);
}

// Seconds of each step, and the memory plan of rank 0.
struct Measured {
  std::vector<double> seconds;
  step::MemoryPlan plan;
  double tokens = 0;
};

base::Result<void> one_step(train::Backend& backend, const step::Program& program,
                            std::int64_t step) {
  const train::StepSettings settings{
      .step = step,
      .learning_rate = 1e-5,
      .beta1 = 0.9,
      .beta2 = 0.95,
      .epsilon = 1e-8,
      .clip = 1,
      .counted_targets = static_cast<double>(program.global_step_tokens())};
  const auto batch = [&](std::int32_t micro, std::span<std::int32_t> tokens,
                         std::span<std::int32_t> targets) -> base::Result<void> {
    const auto random = [&](std::size_t i) {
      const std::uint64_t n =
          (i + static_cast<std::uint64_t>(micro * 977 + step * 31)) * 0x9e3779b97f4a7c15U;
      return static_cast<std::int32_t>((n >> 20U) %
                                       static_cast<std::uint64_t>(program.model.vocab));
    };
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = random(i);
    for (std::size_t i = 0; i < targets.size(); ++i) targets[i] = random(i + 1);
    return {};
  };
  ASSAY_TRY_VOID(train::run_step(backend, program, settings, batch));
  return {};
}

base::Result<void> record_step(train::Backend& backend, const step::Program& program,
                               const std::string& file, std::barrier<>& together, bool first) {
#ifdef ASSAY_CUPTI
  together.arrive_and_wait();
  if (first) ASSAY_TRY_VOID(bench::GpuTimeline::start());
  together.arrive_and_wait();
  ASSAY_TRY_VOID(one_step(backend, program, 100));
  together.arrive_and_wait();
  if (!first) return {};
  ASSAY_TRY(const bench::Overlap found, bench::GpuTimeline::stop());
  fmt::print(
      "timeline: {} copies, {:.1f} ms, {:.1f} ms of it beside kernels: {:.1f} % hidden; {} "
      "kernels, {:.1f} ms\n",
      found.copies, found.copied_ms, found.hidden_ms,
      100 * found.hidden_ms / std::max(found.copied_ms, 1e-9), found.kernels, found.kernels_ms);
  for (const auto& [bytes, some] : found.by_size) {
    if (some.exposed_ms < 0.05) continue;
    fmt::print("  {} copies of {}: {:.2f} ms, {:.2f} ms exposed\n", some.copies,
               base::to_text(base::Bytes(static_cast<std::int64_t>(bytes))), some.ms,
               some.exposed_ms);
  }
  for (std::size_t i = 0; i < std::min<std::size_t>(24, found.exposed.size()); ++i) {
    const auto& gap = found.exposed[i];
    fmt::print("  exposed {:.3f} ms at {:.2f} ms, after {:.60} before {:.60}\n", gap.ms, gap.at_ms,
               gap.after, gap.before);
  }
  if (file != "1") return base::write_file(file, found.records);
  return {};
#else
  (void)backend, (void)program, (void)file, (void)together, (void)first;
  return base::fail(base::failed_error("--timeline", "this build has no CUPTI"));
#endif
}

base::Result<void> run_rank(const Setup& setup, const step::Layout& layout, std::int64_t accumulate,
                            train::RankGroups* groups, std::barrier<>& together,
                            Measured& measured) {
  ASSAY_TRY(const step::Program program, program_of(setup, layout, accumulate));
  const step::MemoryPlan plan = step::plan_memory(program);
  ASSAY_TRY(const auto backend,
            train::cuda::make_cuda_backend(
                {.tuning_file = setup.tuning, .copies_state = false, .groups = groups}));
  ASSAY_TRY_VOID(backend->prepare(program, plan));
  const bool first = layout.rank() == 0;
  if (first) {
    measured.plan = plan;
    measured.tokens = static_cast<double>(program.global_step_tokens());
  }
  constexpr std::int64_t kWarmUp = 2;
  for (std::int64_t step = 1; step <= setup.steps + kWarmUp; ++step) {
    together.arrive_and_wait();
    const auto begin = Clock::now();
    ASSAY_TRY_VOID(one_step(*backend, program, step));
    together.arrive_and_wait();
    const std::chrono::duration<double> took = Clock::now() - begin;
    if (first && step > kWarmUp) measured.seconds.push_back(took.count());
  }
  if (setup.timeline.empty() || layout.ranks() == 1) return {};
  return record_step(*backend, program, setup.timeline, together, first);
}

base::Result<Measured> run_layout(const Setup& setup, const spec::LayoutSpec& layout,
                                  std::int64_t accumulate) {
  const auto ranks = static_cast<int>(layout.dp * layout.inner_ranks());
  Measured measured;
  std::barrier<> together(ranks);
  ASSAY_TRY(const auto devices, comm::make_one_gpu(ranks, 0, {.copying = setup.copying}));
  ASSAY_TRY_VOID(comm::run_local(ranks, [&](comm::Communicator& c) -> base::Result<void> {
    ASSAY_TRY(const step::Layout own, step::layout_of(layout, c.rank()));
    comm::Communicator& device = *devices[static_cast<std::size_t>(c.rank())];
    ASSAY_TRY(const auto groups, train::RankGroups::make(device, own));
    auto done =
        run_rank(setup, own, accumulate, ranks == 1 ? nullptr : groups.get(), together, measured);
    if (!done) {
      fmt::print(stderr, "{}\n", done.error().line());
      std::exit(1);
    }
    return {};
  }));
  return measured;
}

void print(const char* name, const Measured& m) {
  const double median = base::median(m.seconds);
  fmt::print("{:10} {:9.1f} ms  {:8.0f} tokens/s  planned {}", name, median * 1e3,
             m.tokens / median, base::to_text(base::Bytes(m.plan.bytes)));
  for (int i = 0; i < step::kStorages; ++i) {
    const auto storage = static_cast<step::Storage>(i);
    if (m.plan.of(storage) < (1 << 20)) continue;
    fmt::print(", {} {}", step::to_text(storage), base::to_text(base::Bytes(m.plan.of(storage))));
  }
  fmt::print("\n");
  std::fflush(stdout);
}

// "layers" of layers.12; the first one by its name, because what it makes is made last.
std::string kind_of(const step::Unit& unit) {
  return unit.layer > 0 ? unit.name.substr(0, unit.name.find('.')) : unit.name;
}

// By what is exchanged, in the order of the first issue.
base::Result<void> print_windows(const Setup& setup) {
  ASSAY_TRY(const step::Layout layout, step::layout_of(setup.job.layout, 0));
  ASSAY_TRY(const step::Program p, program_of(setup, layout, setup.job.batch.accumulate));
  struct Row {
    std::string what;
    std::int64_t calls = 0;
    double moved = 0;  // bytes of one call
    double flops = 0;
    double bytes = 0;
  };
  std::vector<Row> rows;
  for (const step::testing::ExchangeWindow& window : step::testing::exchange_windows(p)) {
    const step::Op& op = *window.issued;
    const bool out = op.kind == step::OpKind::kAllGather || op.kind == step::OpKind::kReceive;
    const bool last = op.micro + 1 == p.choices.accumulate && op.kind == step::OpKind::kAllToAll;
    std::string what = fmt::format(
        "{} {} {} {}{}", step::to_text(op.phase), step::to_text(op.kind), step::to_text(op.axis),
        op.unit < 0 ? "-" : kind_of(p.units[static_cast<std::size_t>(op.unit)]),
        window.for_next_step ? " for the next step" : (last ? " of the last micro-batch" : ""));
    auto row = std::ranges::find(rows, what, &Row::what);
    if (row == rows.end()) {
      rows.push_back({std::move(what), 0,
                      static_cast<double>(p.bytes_of((out ? op.out : op.in)[0])), window.flops,
                      window.bytes});
      row = rows.end() - 1;
    }
    ++row->calls;
    row->flops = std::min(row->flops, window.flops);
    row->bytes = std::min(row->bytes, window.bytes);
  }
  fmt::print("{:72} {:>5} {:>10} {:>10} {:>12}\n", "exchange", "calls", "MB each", "GFLOP",
             "MB moved");
  for (const Row& row : rows) {
    fmt::print("{:72} {:5} {:10.2f} {:10.1f} {:12.1f}\n", row.what, row.calls, row.moved / 1e6,
               row.flops / 1e9, row.bytes / 1e6);
  }
  return {};
}

base::Result<void> run(const std::vector<std::string>& arguments) {
  Setup setup;
  std::vector<std::string> sets;
  bool windows = false;
  for (std::size_t i = 1; i + 1 < arguments.size(); i += 2) {
    const std::string& value = arguments[i + 1];
    if (arguments[i] == "--set") sets.push_back(value);
    if (arguments[i] == "--steps") setup.steps = std::stoll(value);
    if (arguments[i] == "--rounds") setup.rounds = std::stoll(value);
    if (arguments[i] == "--tuning") setup.tuning = value;
    if (arguments[i] == "--timeline") setup.timeline = value;
    if (arguments[i] == "--windows") windows = value == "1";
    if (arguments[i] == "--copies") {
      ASSAY_TRY(setup.copying, copying_of(value));
    }
  }
  ASSAY_TRY(spec::Loaded loaded,
            spec::load(arguments.at(0), {.overrides = sets, .ranks_from_layout = true}));
  setup.job = std::get<spec::JobSpec>(loaded.spec);
  if (windows) return print_windows(setup);
  const spec::LayoutSpec layout = setup.job.layout;
  spec::LayoutSpec alone;
  alone.dp = 1;
  const std::int64_t micros = setup.job.batch.accumulate;
  std::vector<double> ratios;
  for (std::int64_t round = 0; round < setup.rounds; ++round) {
    ASSAY_TRY(const Measured one, run_layout(setup, alone, micros * layout.data_ranks()));
    ASSAY_TRY(const Measured many, run_layout(setup, layout, micros));
    print("one rank", one);
    print("all ranks", many);
    ratios.push_back(base::median(one.seconds) / base::median(many.seconds));
  }
  fmt::print("ratio {:.3f} (least {:.3f}, most {:.3f})\n", base::median(ratios),
             std::ranges::min(ratios), std::ranges::max(ratios));
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 64;
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);  // see comm::make_one_gpu
  if (const auto done = run({argv + 1, argv + argc}); !done) {
    fmt::print(stderr, "{}\n", done.error().line());
    return 1;
  }
  return 0;
}
