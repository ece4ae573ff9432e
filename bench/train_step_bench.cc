// How fast a GPU trains: whole steps of a model on random tokens.
//
//   train_step_bench PRESET [--set KEY=VALUE]… [--layers L] [--micro-batch B] [--sequence S]
//       [--accumulate A] [--recompute none|cheap|ffn|full] [--optimizer adamw|muon] [--steps N]
//       [--head-rows R] [--deterministic 0|1] [--tuning FILE]
//
// PRESET is a model or job that spec::load knows; KEY is as in `assay spec --set`. Prints a table
// per kind of op from one more step in which each op is timed by itself.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/units.h"
#include "spec/load.h"
#include "spec/parameters.h"
#include "train/cuda/cuda_backend.h"
#include "train/split_master.h"

namespace {

using namespace assay;

constexpr double kPeak = 989e12;  // FLOP/s of a Hopper GPU in bf16, as published
constexpr int kWarmUp = 2;

struct Arguments {
  std::string model;
  std::vector<std::string> overrides;
  step::Choices choices{.numerics = step::numerics_of(spec::Precision::kBf16),
                        .recompute = spec::Recompute::kCheap,
                        .sequence = 4096};
  std::int64_t steps = 5;
  train::cuda::CudaOptions options;
};

template <class E>
base::Result<E> one_of(const std::string& text, const std::map<std::string, E>& names) {
  const auto found = names.find(text);
  if (found == names.end()) return base::fail(base::usage_error(text, "is none of the choices"));
  return found->second;
}

base::Result<Arguments> parse(const std::vector<std::string>& words) {
  Arguments a;
  if (words.empty()) return base::fail(base::usage_error("", "name a model", "see the source"));
  a.model = words[0];
  for (std::size_t i = 1; i + 1 < words.size(); i += 2) {
    const std::string& key = words[i];
    const std::string& value = words[i + 1];
    const auto number = [&] { return std::stoll(value); };
    if (key == "--set") {
      a.overrides.push_back(value);
    } else if (key == "--layers") {
      a.overrides.push_back("model.layers=" + value);
    } else if (key == "--micro-batch") {
      a.choices.micro_batch = number();
    } else if (key == "--sequence") {
      a.choices.sequence = number();
    } else if (key == "--accumulate") {
      a.choices.accumulate = number();
    } else if (key == "--head-rows") {
      a.choices.head_rows = number();
    } else if (key == "--steps") {
      a.steps = number();
    } else if (key == "--deterministic") {
      a.options.deterministic_attention = number() != 0;
    } else if (key == "--tuning") {
      a.options.tuning_file = value;
    } else if (key == "--recompute") {
      ASSAY_TRY(a.choices.recompute,
                one_of<spec::Recompute>(value, {{"none", spec::Recompute::kNone},
                                                {"cheap", spec::Recompute::kCheap},
                                                {"ffn", spec::Recompute::kFfn},
                                                {"full", spec::Recompute::kFull}}));
    } else if (key == "--optimizer") {
      ASSAY_TRY(a.choices.optimizer,
                one_of<spec::Optimizer>(
                    value, {{"adamw", spec::Optimizer::kAdamw}, {"muon", spec::Optimizer::kMuon}}));
    } else {
      return base::fail(base::usage_error(key, "is no option"));
    }
  }
  return a;
}

base::Result<spec::ModelSpec> load_model(const Arguments& a) {
  ASSAY_TRY(const spec::Loaded loaded, spec::load(a.model, {.overrides = a.overrides}));
  if (const auto* model = std::get_if<spec::ModelSpec>(&loaded.spec)) return *model;
  if (const auto* job = std::get_if<spec::JobSpec>(&loaded.spec)) return job->model;
  return base::fail(base::usage_error(a.model, "is no model"));
}

// Normal numbers from a pool whose length is prime, so that no two rows are alike: making each anew
// would take longer than what is measured.
base::Result<void> fill_weights(train::Backend& backend, const step::Program& p) {
  constexpr std::size_t kPool = 16777213;
  constexpr std::int64_t kPiece = std::int64_t{1} << 25U;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> pool(kPool);
  for (float& value : pool) value = normal(random);
  std::size_t next = 0;
  std::vector<std::uint16_t> piece;
  for (const step::Parameter& parameter : p.parameters) {
    for (std::int64_t first = 0; first < parameter.elements(); first += kPiece) {
      const std::int64_t count = std::min(kPiece, parameter.elements() - first);
      piece.resize(static_cast<std::size_t>(count));
      for (std::uint16_t& half : piece) {
        float value = parameter.init == step::Init::kOnes ? 1.0F : 0.0F;
        if (parameter.init == step::Init::kNormal) {
          value = static_cast<float>(parameter.init_std) * pool[next];
          next = next + 1 == kPool ? 0 : next + 1;
        }
        half = train::split_master(value).high;
      }
      const step::View view{p.of(parameter.group).weights, parameter.offset + first, 1, count,
                            count};
      ASSAY_TRY_VOID(backend.write(view, std::as_bytes(std::span(piece))));
    }
  }
  return {};
}

class Bench {
 public:
  Bench(train::cuda::CudaBackend& backend, const step::Program& program)
      : backend_(backend), program_(program) {}

  // Seconds of one step.
  base::Result<double> step() {
    const train::StepSettings settings{
        .step = ++steps_,
        .learning_rate = 3e-4,
        .muon_learning_rate = 0.02,
        .muon_momentum = 0.95,
        .beta1 = 0.9,
        .beta2 = 0.95,
        .epsilon = 1e-8,
        .weight_decay = 0.1,
        .clip = 1,
        .counted_targets = static_cast<double>(program_.step_tokens())};
    std::uniform_int_distribution<std::int32_t> any(
        0, static_cast<std::int32_t>(program_.model.vocab - 1));
    const auto begin = std::chrono::steady_clock::now();
    ASSAY_TRY(scalars_, train::run_step(backend_, program_, settings,
                                        [&](std::int32_t, auto tokens, auto targets) {
                                          for (auto& token : tokens) token = any(random_);
                                          for (auto& target : targets) target = any(random_);
                                          return base::Result<void>{};
                                        }));
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  [[nodiscard]] double loss() const {
    return of(step::Scalar::kLossSum) / of(step::Scalar::kCount);
  }
  [[nodiscard]] double of(step::Scalar which) const {
    return static_cast<double>(scalars_[static_cast<std::size_t>(which)]);
  }

 private:
  train::cuda::CudaBackend& backend_;
  const step::Program& program_;
  std::mt19937 random_{2};
  std::int64_t steps_ = 0;
  train::Scalars scalars_{};
};

void print_speed(const step::Program& p, std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2];
  const auto tokens = static_cast<double>(p.step_tokens());
  const spec::Parameters parameters = spec::parameters_of(p.model);
  const spec::ModelSpec& m = p.model;
  const double attention = 12.0 * static_cast<double>(m.layers) * static_cast<double>(m.q_dim()) *
                           static_cast<double>(p.choices.sequence);
  const auto use = [&](std::int64_t counted) {
    return 100 * tokens / median * (6.0 * static_cast<double>(counted) + attention) / kPeak;
  };
  fmt::print("{:.0f} tokens/s; ms per step: median {:.1f}, min {:.1f}, max {:.1f}\n",
             tokens / median, 1e3 * median, 1e3 * seconds.front(), 1e3 * seconds.back());
  fmt::print(
      "MFU {:.1f} % (all parameters), {:.1f} % (matmul parameters); executed {:.0f} TFLOP/s\n",
      use(parameters.total), use(parameters.matmul), p.flops() / median / 1e12);
}

void print_memory(const step::MemoryPlan& plan, const train::cuda::MemoryUse& use) {
  const auto text = [](std::int64_t bytes) { return base::to_text(base::Bytes(bytes)); };
  fmt::print("memory: plan {}, workspace {}, measured {};", text(use.planned), text(use.workspace),
             text(use.measured));
  for (int i = 0; i < 7; ++i) {
    fmt::print(" {} {}", step::to_text(static_cast<step::Storage>(i)), text(plan.of_storage[i]));
  }
  fmt::print("\n");
}

struct Row {
  double ms = 0;
  double flops = 0;
  double bytes = 0;
  int count = 0;
};

std::string label_of(const step::Op& op) {
  std::string label(step::to_text(op.kind));
  if (op.kind == step::Kind::kMatmul) {
    const char* pass = op.transpose_a ? "weights" : op.transpose_b ? "forward" : "inputs";
    label += fmt::format(" {} {}", step::to_text(op.part), pass);
  }
  return label;
}

// What the list says is read and written; logits are in truth read twice.
double bytes_of(const step::Op& op, const step::Program& p) {
  const auto bytes = [&](const step::View& view) {
    const step::Buffer& buffer = p.buffers[static_cast<std::size_t>(view.buffer)];
    return static_cast<double>(view.elements() * step::bytes_of(buffer.type));
  };
  const bool in_place = op.kind == step::Kind::kRotate || op.kind == step::Kind::kRotateGrad;
  double sum = 0;
  for (const step::View& view : op.in) sum += bytes(view);
  for (std::size_t i = 0; i < op.out.size(); ++i) {
    sum += bytes(op.out[i]) * (op.adds_to(i) || in_place ? 2 : 1);
  }
  return sum;
}

void print_profile(const std::vector<train::cuda::OpTime>& times, const step::Program& p) {
  std::map<std::string, Row> rows;
  double busy = 0;
  double idle = 0;
  for (const train::cuda::OpTime& time : times) {
    Row& row = rows[label_of(*time.op)];
    row.ms += time.ms;
    row.flops += time.op->flops;
    row.bytes += bytes_of(*time.op, p);
    ++row.count;
    busy += time.ms;
    idle += time.idle_ms;
  }
  fmt::print("{:<32} {:>6} {:>9} {:>6} {:>8} {:>6}\n", "op", "times", "ms", "%", "TFLOP/s", "TB/s");
  for (const auto& [label, row] : rows) {
    fmt::print("{:<32} {:>6} {:>9.3f} {:>6.1f} {:>8.0f} {:>6.2f}\n", label, row.count, row.ms,
               100 * row.ms / (busy + idle), row.flops / row.ms / 1e9, row.bytes / row.ms / 1e9);
  }
  fmt::print("{:<32} {:>6} {:>9.3f} {:>6.1f}\n", "between ops", "", idle,
             100 * idle / (busy + idle));
  fmt::print("{:<32} {:>6} {:>9.3f}\n", "all", times.size(), busy + idle);
}

base::Result<void> run(const std::vector<std::string>& words) {
  ASSAY_TRY(const Arguments a, parse(words));
  ASSAY_TRY(const spec::ModelSpec model, load_model(a));
  ASSAY_TRY(const step::Program program, step::build(model, a.choices));
  const step::MemoryPlan plan = step::plan_memory(program);
  ASSAY_TRY(const auto backend, train::cuda::make_cuda_backend(a.options));
  const auto begin = std::chrono::steady_clock::now();
  ASSAY_TRY_VOID(backend->prepare(program, plan));
  ASSAY_TRY_VOID(fill_weights(*backend, program));
  const double prepared =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  fmt::print("{}; {} parameters, {} tokens/step, {} ops; prepared in {:.1f} s\n",
             backend->description(), base::short_count(spec::parameters_of(model).total),
             program.step_tokens(), program.ops.size(), prepared);
  Bench bench(*backend, program);
  std::vector<double> seconds;
  for (std::int64_t i = 0; i < kWarmUp + a.steps; ++i) {
    ASSAY_TRY(const double took, bench.step());
    if (i >= kWarmUp) seconds.push_back(took);
    fmt::print("step {}: {:.1f} ms, loss {:.4f}, norm {:.4f}{}\n", i + 1, 1e3 * took, bench.loss(),
               bench.of(step::Scalar::kNorm),
               bench.of(step::Scalar::kNonFinite) != 0 ? ", not finite" : "");
    std::fflush(stdout);
  }
  print_speed(program, seconds);
  print_memory(plan, backend->memory());
  backend->time_ops(true);
  ASSAY_TRY_VOID(bench.step());
  print_profile(backend->op_times(), program);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const auto done = run({argv + 1, argv + argc});
  if (done) return 0;
  fmt::print(stderr, "train_step_bench: {}\n", done.error().line());
  return static_cast<int>(done.error().code);
}
