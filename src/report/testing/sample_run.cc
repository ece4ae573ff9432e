#include "report/testing/sample_run.h"

#include <fmt/format.h>

#include <cmath>

namespace assay::report::testing {
namespace {

constexpr double kBegan = 1'790'000'000;

store::MetricSeries series(const char* name, const char* unit, std::int64_t steps,
                           const auto& value_at) {
  store::MetricSeries made{1, name, unit, {}};
  for (std::int64_t step = 1; step <= steps; ++step) {
    const double value = value_at(step);
    made.points.push_back({step, std::isfinite(value) ? std::optional(value) : std::nullopt});
  }
  return made;
}

void add_metrics(ReportedRun& run, std::int64_t steps) {
  const auto took = [](std::int64_t step) {
    return 0.2 + 0.01 * std::sin(static_cast<double>(step * step)) + (step == 5 ? 0.9 : 0);
  };
  double at = 3;
  std::vector<double> ends = {0};
  for (std::int64_t step = 1; step <= steps; ++step) ends.push_back(at += took(step) + 0.002);
  const auto wave = [](std::int64_t step) { return std::sin(static_cast<double>(step) / 9); };
  const auto end = [&](std::int64_t step) { return kBegan + ends[static_cast<std::size_t>(step)]; };
  const auto add = [&](const char* name, const char* unit, const auto& value_at) {
    run.metrics.push_back(series(name, unit, steps, value_at));
  };
  add("unix_s", "s", end);
  add("loss", "", [&](std::int64_t step) {
    return step == 7 ? std::nan("")
                     : 3 + 4 / std::sqrt(static_cast<double>(step)) + 0.1 * wave(step);
  });
  add("seconds", "s", took);
  add("tokens_per_s", "tokens/s", [&](std::int64_t step) { return 2048 / took(step); });
  add("mfu", "fraction", [&](std::int64_t step) { return 0.08 / took(step); });
  add("mfu_6n", "fraction", [&](std::int64_t step) { return 0.085 / took(step); });
  add("memory_bytes", "bytes", [&](std::int64_t) { return 8.9e9; });
  add("host_bytes", "bytes", [&](std::int64_t step) { return 1e9 + 1e8 * wave(step); });
  add("watts", "W", [&](std::int64_t step) { return 310 + 25 * wave(step); });
  add("joules", "J", [&](std::int64_t step) { return 310 * took(step); });
  add("left_out", store::kFlag, [&](std::int64_t step) { return step == 7 ? 1.0 : 0.0; });
  run.record.duration_s = at + 1.5;
}

}  // namespace

ReportedRun sample_run(std::int64_t steps) {
  ReportedRun run;
  store::RunRecord& record = run.record;
  record.id = 12;
  record.uid = "0123456789abcdef";
  record.name = "demo";
  record.command = {"assay-train", "train", "demo"};
  record.directory = "/project";
  record.status = store::RunStatus::kDone;
  record.exit_code = 0;
  record.tracer = "preload";
  record.complete = true;
  record.started_unix_ns = static_cast<std::int64_t>(kBegan) * 1'000'000'000;
  record.usage = {.user_s = 61, .system_s = 2, .max_rss_bytes = 1'400'000'000};
  record.context.host = "engine";
  record.context.git = store::Git{.root = "/project",
                                  .commit = "c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00",
                                  .branch = "main",
                                  .remote = "https://token@example.org/x.git",
                                  .diff = "SECRET DIFF"};
  record.context.environment = {{"SECRET", "do not tell"}};
  record.context.machine = base::Json::parse(R"({
    "os": {"name": "Debian GNU/Linux", "version": "12", "kernel": "6.1.0"},
    "cpu": {"model": "Example CPU", "threads": 32, "usable_threads": 16},
    "memory_bytes": 137438953472, "numa_nodes": [{"id": 0}],
    "gpus": [{"index": 0, "name": "NVIDIA H200", "memory_bytes": 150754820096, "sm_count": 132,
              "pcie": {"max_gen": 5, "max_width": 16}, "nvlinks": 18, "power_limit_w": 700.0},
             {"index": 1, "name": "NVIDIA H200"}],
    "gpu_links": [{"a": 0, "b": 1, "pcie": "cross-numa", "nvlinks": 18}],
    "drivers": {"nvidia": "580.65.06", "cuda": "13.0"}})");
  for (const std::int64_t step : {steps / 2, steps}) {
    for (const char* file : {"model.safetensors", "manifest.json"}) {
      store::Output output;
      output.path = fmt::format("/project/runs/demo/checkpoints/step-{}/{}", step, file);
      output.size = 5'000'000;
      record.outputs.push_back(output);
    }
  }
  record.input_count = 2;
  record.output_count = 4;
  record.processes = {
      {.pid = 41,
       .parent = 1,
       .arguments = {},
       .program = "/bin/assay-train",
       .started_ns = 0,
       .ended_ns = 2'000'000'000,
       .wait_status = 0},
      {.pid = 42, .parent = 41, .arguments = {}, .program = "", .started_ns = 1'000'000}};
  record.gpu.use = {{"kernels", 123'456, 0},
                    {"copies_to_device", 12, 4096},
                    {"graphs", 7, 700},
                    {"matmuls", 9, 2'500'000}};
  record.gpu.memory = {{"GPU-00112233445566778899aabbccddeeff", 9'000'000'000}};
  record.gpu.collectives = {{"0011223344556677", 8, "all-reduce", "bf16", 96, 1 << 30}};
  run.command = "assay-train train demo";
  run.lineage = {.inputs = {{"train.bin", "from @1 prepare raw.txt"}, {"job.toml", "1.20 KiB"}},
                 .outputs = {{"runs/demo/metrics.jsonl", "created, 12.0 KiB"}}};
  add_metrics(run, steps);
  run.predicted = Predicted{.of = "demo on NVIDIA H200",
                            .step_s = 0.19,
                            .step_interval_s = {0.17, 0.23},
                            .tokens_per_s = 10'779,
                            .mfu = 0.42,
                            .mfu_6n = 0.44,
                            .memory_bytes = 9e9,
                            .parts_s = {{"products", 0.14}, {"attention", 0.03}, {"other", 0.02}}};
  run.rates = {.dollars_per_hour = 3.5, .offers = {}, .grams_per_kwh = 380};
  return run;
}

ReportedRun hostile_run(const std::string& bytes) {
  ReportedRun run = sample_run(20);
  store::RunRecord& record = run.record;
  for (std::string* text :
       {&record.name, &record.directory, &record.tracer, &record.context.host, &run.command,
        &run.not_predicted, &record.context.git->branch, &run.predicted->of}) {
    *text = bytes;
  }
  record.command = {bytes};
  record.processes[0].program = bytes;
  record.missed = {{bytes, bytes}};
  record.context.packages = {{bytes, bytes, bytes}};
  record.context.machine["cpu"]["model"] = bytes;
  record.context.machine["gpus"][0]["name"] = bytes;
  record.context.machine[bytes] = bytes;
  record.gpu.use.push_back({bytes, 1, 1});
  record.gpu.collectives[0].operation = bytes;
  run.lineage.inputs = {{bytes, bytes}};
  run.lineage.outputs = {{bytes, bytes}};
  run.predicted->parts_s.emplace_back(bytes, 0.01);
  run.rates.dollars_per_hour.reset();
  run.rates.offers = {{bytes, bytes, bytes, bytes, 1, 2, bytes}};
  run.metrics.push_back({1, bytes, bytes, {{1, 2.0}, {2, 3.0}, {3, 1.0}}});
  return run;
}

}  // namespace assay::report::testing
