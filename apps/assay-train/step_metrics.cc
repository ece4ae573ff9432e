#include "assay-train/step_metrics.h"

#include <fmt/format.h>

#include <algorithm>

#include "spec/parameters.h"

namespace assay::cli {
namespace {

// Memory is allocated before the first step and stays; a query at every step would slow it down.
constexpr double kMemoryInterval_s = 1;

}  // namespace

Telemetry::Telemetry(const train::Backend& backend, std::unique_ptr<machine::Meter> meter)
    : backend_(backend) {
  if (meter != nullptr) power_ = std::make_unique<machine::PowerLog>(std::move(meter));
}

void Telemetry::measure_memory() {
  last_.memory_bytes = backend_.measured_bytes();
  last_.host_bytes = host_.now().resident_bytes;
  peak_memory_bytes_ = std::max(peak_memory_bytes_, last_.memory_bytes);
  since_measured_.restart();
}

void Telemetry::discard() {
  if (power_ != nullptr) power_->take();
}

StepUsage Telemetry::take() {
  if (last_.host_bytes == 0 || since_measured_.elapsed().count() >= kMemoryInterval_s)
    measure_memory();
  last_.power = power_ != nullptr ? power_->take() : machine::PowerUse{};
  return last_;
}

UtilisationModel::UtilisationModel(const spec::JobSpec& job) {
  const spec::FlopsPerToken flops = spec::flops_per_token(job.model, job.batch.sequence);
  flops_ = flops.without_embedding;
  flops_6n_ = flops.with_embedding;
  const spec::DeviceSpec& device = job.cluster.device;
  const bool fp32 = job.train.precision == spec::Precision::kFp32;
  const auto rate = fp32 ? device.fp32 : device.bf16;
  peak_name_ = fp32 ? "fp32" : "bf16";
  // It is compared with the rate of all ranks together.
  const auto ranks = static_cast<double>(job.layout.ranks.value_or(1));
  if (rate) peak_ = rate->count() * ranks;
  if (job.train.precision == spec::Precision::kFp8 && device.fp8) {
    fp8_peak_ = device.fp8->count() * ranks;
  }
}

std::optional<Utilisation> UtilisationModel::at(double tokens_per_s) const {
  if (peak_ <= 0) return std::nullopt;
  Utilisation found{.mfu = tokens_per_s * flops_ / peak_,
                    .mfu_6n = tokens_per_s * flops_6n_ / peak_,
                    .peak = peak_name_};
  if (fp8_peak_ > 0) {
    found.fp8 = {tokens_per_s * flops_ / fp8_peak_, tokens_per_s * flops_6n_ / fp8_peak_};
  }
  return found;
}

std::optional<double> MeasuredStep::watts() const {
  if (!usage.power.joules || usage.power.seconds <= 0) return std::nullopt;
  return *usage.power.joules / usage.power.seconds;
}

store::MetricRow row_of(const MeasuredStep& step) {
  const train::StepReport& r = step.report;
  store::MetricRow row{r.step, {}};
  const auto add = [&](const char* name, const char* unit, std::optional<double> value) {
    if (value) row.values.push_back({name, unit, *value});
  };
  const std::int64_t unix_ms = step.unix_ns / 1'000'000;
  add("unix_s", "s", static_cast<double>(unix_ms) / 1e3);
  add("tokens", "tokens", static_cast<double>(r.tokens));
  if (r.targets) add("targets", "tokens", static_cast<double>(*r.targets));
  add("loss", "", r.loss);
  add("z_loss", "", r.z_loss);
  if (r.experts) {
    add("balance_loss", "", r.experts->balance_loss);
    add("router_z_loss", "", r.experts->router_z_loss);
    add("dropped", "fraction", r.experts->dropped);
    add("expert_load_largest", "of the mean", r.experts->largest);
    add("expert_load_entropy", "fraction", r.experts->entropy);
    for (std::size_t i = 0; i < r.experts->share.size(); ++i) {
      add(fmt::format("expert_{:03}_load", i).c_str(), "fraction", r.experts->share[i]);
    }
  }
  add("gradient_norm", "", r.gradient_norm);
  add("learning_rate", "", r.learning_rate);
  add("seconds", "s", r.seconds);
  add("tokens_per_s", "tokens/s", r.tokens_per_s);
  if (step.utilisation) {
    add("mfu", "fraction", step.utilisation->mfu);
    add("mfu_6n", "fraction", step.utilisation->mfu_6n);
    if (step.utilisation->fp8) {
      add("mfu_fp8", "fraction", step.utilisation->fp8->mfu);
      add("mfu_6n_fp8", "fraction", step.utilisation->fp8->mfu_6n);
    }
  }
  const auto add_bytes = [&](const char* name, std::int64_t bytes) {
    if (bytes > 0) add(name, "bytes", static_cast<double>(bytes));
  };
  add_bytes("memory_bytes", step.usage.memory_bytes);
  add_bytes("host_bytes", step.usage.host_bytes);
  add("watts", "W", step.watts());
  if (step.usage.power.joules) {
    add("joules", "J", step.usage.power.joules);
    add("joules_per_token", "J", *step.usage.power.joules / static_cast<double>(step.tokens));
  }
  add("sm_mhz", "MHz", step.usage.power.clock_mhz);
  add("left_out", store::kFlag, r.skipped ? 1 : 0);
  return row;
}

store::MetricRow row_of(const train::ValidationReport& report) {
  return {report.step,
          {{"validation_loss", "", report.loss},
           {"validation_tokens", "tokens", static_cast<double>(report.tokens)},
           {"validation_seconds", "s", report.seconds}}};
}

}  // namespace assay::cli
