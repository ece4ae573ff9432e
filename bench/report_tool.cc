// report_tool DIR STEPS: a project in DIR with one recorded training run of so many steps, made up,
// with every quantity that the trainer measures. Run by bench/report.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/random_draws.h"
#include "store/metrics.h"
#include "store/run_reader.h"
#include "store/run_writer.h"

namespace {

using namespace assay;

constexpr std::int64_t kBegan = 1'790'000'000'000'000'000;
constexpr std::int64_t kTokens = 524'288;
constexpr std::int64_t kRowsAtOnce = 5000;

store::RunRecord made_up_run(const std::string& directory, std::int64_t steps, double seconds) {
  store::RunRecord run;
  run.command = {"assay-train", "train", "llama3-8b-h200"};
  run.directory = directory;
  run.name = "made-up";
  run.status = store::RunStatus::kDone;
  run.exit_code = 0;
  run.tracer = "preload";
  run.complete = true;
  run.started_unix_ns = kBegan;
  run.duration_s = seconds;
  run.context.user = "ada";
  run.context.host = "engine";
  for (std::int64_t step = steps / 4; step <= steps && step > 0; step += steps / 4) {
    store::Output output;
    output.path = fmt::format("{}/runs/x/checkpoints/step-{}/model.safetensors", directory, step);
    output.size = 16'000'000'000;
    run.outputs.push_back(output);
  }
  return run;
}

store::MetricRow made_up_row(std::int64_t step, double took, double& at, base::Draws& draws) {
  at += took + (step % 1000 == 0 ? 2.5 : 0.001);
  const double noise = draws.uniform() - 0.5;
  const double rate = static_cast<double>(kTokens) / took;
  const double watts = 640 + 40 * noise;
  return {step,
          {{"unix_s", "s", static_cast<double>(kBegan) / 1e9 + 30 + at},
           {"tokens", "tokens", static_cast<double>(step * kTokens)},
           {"loss", "", 2 + 9 * std::exp(-static_cast<double>(step) / 9000) + 0.2 * noise},
           {"z_loss", "", 30 + noise},
           {"gradient_norm", "", 0.5 + std::abs(noise)},
           {"learning_rate", "", 3e-4},
           {"seconds", "s", took},
           {"tokens_per_s", "tokens/s", rate},
           {"mfu", "fraction", 0.43 + 0.02 * noise},
           {"mfu_6n", "fraction", 0.46 + 0.02 * noise},
           {"memory_bytes", "bytes", 1.2e11},
           {"host_bytes", "bytes", 9e9 + 1e8 * noise},
           {"watts", "W", watts},
           {"joules", "J", watts * took},
           {"joules_per_token", "J", watts * took / static_cast<double>(kTokens)},
           {"sm_mhz", "MHz", 1755 + 30 * noise},
           {"left_out", store::kFlag, step % 33'333 == 0 ? 1.0 : 0.0}}};
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t steps = argc == 3 ? std::atoll(argv[2]) : 0;
  if (steps < 1) {
    fmt::print(stderr, "report_tool DIR STEPS\n");
    return 64;
  }
  auto store = store::Store::create(store::location_in(argv[1]), {});
  if (!store) return fmt::print(stderr, "{}\n", store.error().line()), 3;
  const auto id = store::record_run(
      *store, made_up_run(argv[1], steps, 60 + 1.01 * static_cast<double>(steps)));
  if (!id) return fmt::print(stderr, "{}\n", id.error().line()), 3;
  const auto run = store::head_of(*store, *id);
  auto writer = store::MetricWriter::begin(*store, run->uid);
  if (!writer) return fmt::print(stderr, "{}\n", writer.error().line()), 3;
  base::Draws draws(7);
  double at = 0;
  std::vector<store::MetricRow> rows;
  for (std::int64_t step = 1; step <= steps; ++step) {
    const double spike = draws.uniform() < 2e-4 ? 3 * draws.uniform() : 0;
    rows.push_back(made_up_row(step, 1 + 0.02 * draws.uniform() + spike, at, draws));
    if (step % kRowsAtOnce != 0 && step != steps) continue;
    if (!writer->write(rows).value_or(false)) return 3;
    rows.clear();
  }
  return 0;
}
