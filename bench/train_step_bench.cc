// How fast a GPU trains: whole steps of a model on random tokens.
//
//   train_step_bench PRESET [--set KEY=VALUE]… [--layers L] [--micro-batch B] [--sequence S]
//       [--accumulate A] [--recompute none|cheap|ffn|full] [--optimizer adamw|muon] [--steps N]
//       [--precision bf16|fp8]
//       [--head-rows R] [--deterministic 0|1] [--tuning FILE] [--documents TOKENS]
//
// With --documents attention stays within documents of so many tokens.
// PRESET is a model or job that spec::load finds; KEY is as for `assay train --set`. Also prints a
// table by kind of op, from one more step in which each op is timed separately. Of a mixture also
// how even the load was, how long the host waited for it, and what the router and its rows cost.
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
#include "train_step_report.h"

namespace {

using namespace assay;

constexpr int kWarmUp = 2;

struct Arguments {
  std::string model;
  std::vector<std::string> overrides;
  step::Choices choices{.numerics = step::numerics_of(spec::Precision::kBf16),
                        .recompute = spec::Recompute::kCheap,
                        .sequence = 4096};
  std::int64_t steps = 5;
  std::int64_t document_tokens = 0;
  train::cuda::CudaOptions options{.copies_state = false};
};

template <class E>
base::Result<E> one_of(const std::string& text, const std::map<std::string, E>& names) {
  const auto found = names.find(text);
  if (found == names.end()) return base::fail(base::usage_error(text, "is none of the choices"));
  return found->second;
}

base::Result<Arguments> parse(const std::vector<std::string>& arguments) {
  Arguments a;
  if (arguments.empty()) return base::fail(base::usage_error("", "name a model", "see the source"));
  a.model = arguments[0];
  for (std::size_t i = 1; i + 1 < arguments.size(); i += 2) {
    const std::string& key = arguments[i];
    const std::string& value = arguments[i + 1];
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
    } else if (key == "--documents") {
      a.document_tokens = number();
      a.choices.document_mask = a.document_tokens > 0;
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
    } else if (key == "--precision") {
      ASSAY_TRY(const auto precision,
                one_of<spec::Precision>(
                    value, {{"bf16", spec::Precision::kBf16}, {"fp8", spec::Precision::kFp8}}));
      a.choices.numerics = step::numerics_of(precision);
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
  if (const auto* run = std::get_if<spec::JobSpec>(&loaded.spec)) return run->model;
  return base::fail(base::usage_error(a.model, "is no model"));
}

class Steps {
 public:
  // `document_tokens`: of each document, where they are masked.
  Steps(train::cuda::CudaBackend& backend, const step::Program& program,
        std::int64_t document_tokens)
      : backend_(backend), program_(program), document_tokens_(document_tokens) {}

  // Seconds of one step.
  base::Result<double> step() {
    const train::StepSettings settings{
        .step = ++count_,
        .learning_rate = 3e-4,
        .muon_learning_rate = 0.02,
        .muon_momentum = 0.95,
        .beta1 = 0.9,
        .beta2 = 0.95,
        .epsilon = 1e-8,
        .weight_decay = 0.1,
        .clip = 1,
        .counted_targets = static_cast<double>(program_.step_tokens()),
        .balance_loss = 1e-2,
        .router_z_loss = 1e-3,
        .balance_rate = 1e-3};
    std::uniform_int_distribution<std::int32_t> any(
        0, static_cast<std::int32_t>(program_.model.vocab - 1));
    const auto begin = std::chrono::steady_clock::now();
    ASSAY_TRY(scalars_,
              train::run_step(
                  backend_, program_, settings,
                  [&](std::int32_t, auto tokens, auto targets) {
                    for (auto& token : tokens) token = any(random_);
                    for (auto& target : targets) target = any(random_);
                    return base::Result<void>{};
                  },
                  [&](std::int32_t, auto documents) {
                    for (std::size_t i = 0; i < documents.size(); ++i) {
                      const auto at = static_cast<std::int64_t>(i) % program_.choices.sequence;
                      documents[i] = static_cast<std::int32_t>(at - at % document_tokens_);
                    }
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
  std::int64_t document_tokens_;
  std::mt19937 random_{2};
  std::int64_t count_ = 0;
  train::Scalars scalars_{};
};

base::Result<void> run(const std::vector<std::string>& arguments) {
  ASSAY_TRY(const Arguments a, parse(arguments));
  ASSAY_TRY(const spec::ModelSpec model, load_model(a));
  ASSAY_TRY(const step::Program program, step::build(model, a.choices));
  const step::MemoryPlan plan = step::plan_memory(program);
  ASSAY_TRY(const auto backend, train::cuda::make_cuda_backend(a.options));
  const auto begin = std::chrono::steady_clock::now();
  ASSAY_TRY_VOID(backend->prepare(program, plan));
  ASSAY_TRY_VOID(bench::fill_weights(*backend, program));
  const double prepared =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  fmt::print("{}; {} parameters, {} tokens/step, {} ops; prepared in {:.1f} s\n",
             backend->description(), base::short_count(spec::parameters_of(model).total),
             program.step_tokens(), program.ops.size(), prepared);
  Steps steps(*backend, program, a.document_tokens);
  std::vector<double> seconds;
  for (std::int64_t i = 0; i < kWarmUp + a.steps; ++i) {
    ASSAY_TRY(const double took, steps.step());
    if (i >= kWarmUp) seconds.push_back(took);
    fmt::print("step {}: {:.1f} ms, loss {:.4f}, norm {:.4f}{}\n", i + 1, 1e3 * took, steps.loss(),
               steps.of(step::Scalar::kNorm),
               steps.of(step::Scalar::kNonFinite) != 0 ? ", not finite" : "");
    std::fflush(stdout);
  }
  bench::print_speed(program, seconds);
  if (model.is_moe()) {
    const std::chrono::duration<double> waited = backend->waited_for_experts();
    ASSAY_TRY_VOID(bench::print_load(*backend, program,
                                     waited.count() / static_cast<double>(kWarmUp + a.steps)));
  }
  bench::print_memory(plan, backend->memory());
  backend->time_ops(true);
  ASSAY_TRY_VOID(steps.step());
  bench::print_profile(backend->op_times(), program);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const auto done = run({argv + 1, argv + argc});
  if (done) return 0;
  fmt::print(stderr, "train_step_bench: {}\n", done.error().line());
  return static_cast<int>(done.error().code);
}
