#include "assay/shared/gpu_limits.h"

#include <algorithm>
#include <cstdlib>

#include "base/process/environment.h"
#include "observe/collect/gpu_counters.h"

namespace assay::cli {
namespace {

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

bool has_share(const share::Limits& limits) {
  return limits.thousandths && *limits.thousandths < wire::kGpuWholeShare;
}

base::Error cannot(const char* what, const char* hint) {
  return base::unfit_error("run", what, hint);
}

}  // namespace

void add_limit_options(share::GpuLimitOptions& limits, std::vector<Option>& options) {
  options.push_back({"--gpu-memory",
                     "memory limit on each GPU, for all processes of the run together",
                     &limits.memory,
                     {},
                     "SIZE",
                     false,
                     true});
  options.push_back(
      {"--gpu-compute", "share of each GPU's time", &limits.compute, {}, "PERCENT", false, true});
  options.push_back({"--gpu",
                     "limits of one GPU: an index or UUID, then memory, compute, priority, borrow",
                     &limits.devices,
                     {},
                     "N=memory:SIZE,compute:PERCENT"});
  options.push_back(
      {"--gpu-borrow", "exceed the share while no other run wants the GPU", &limits.borrow});
  options.push_back({"--priority", "which waiting run gets the GPU first: high, normal or low",
                     &limits.priority,
                     [] {
                       return std::vector<std::string>{"high", "normal", "low"};
                     },
                     "LEVEL", false, true});
}

share::LimitContext limit_context() {
  share::LimitContext here;
  here.cuda = {.visible_devices = variable("CUDA_VISIBLE_DEVICES"),
               .device_order = variable("CUDA_DEVICE_ORDER")};
  const auto watch = machine::GpuMonitor::open();
  if (watch) {
    here.gpus = watch->gpus();
  } else {
    here.why_no_gpus = watch.error().line();
  }
  return here;
}

base::Result<share::LimitPlan> limits_of_run(const share::GpuLimitOptions& options) {
  if (options.empty()) return share::LimitPlan{};
  const std::optional<std::string> requested = variable("ASSAY_GPU");
  if (requested == "0") {
    return base::fail(base::usage_error("run", "GPU limits cannot be enforced with ASSAY_GPU=0",
                                        "unset it, or leave the limits out"));
  }
  if (!collect::gpu_library_found()) {
    return base::fail(cannot("GPU limits need libassay-gpu.so, which was not found",
                             "install it beside the program or in ../lib/assay"));
  }
  share::LimitContext here = limit_context();
  here.unchecked_allowed = requested == "1";
  ASSAY_TRY(share::LimitPlan plan, share::plan_limits("run", options, here));
  if (!collect::cuda_may_run(base::Environment::from_current())) {
    return base::fail(cannot("GPU limits cannot be enforced: the loader finds no libcuda.so.1",
                             "set ASSAY_GPU=1 if the command brings its own"));
  }
  const bool shared = has_share(plan.all) ||
                      std::any_of(plan.devices.begin(), plan.devices.end(),
                                  [](const auto& device) { return has_share(device.limits); });
  if (options.borrow && !shared) {
    return base::fail(base::usage_error("run --gpu-borrow", "there is no share to exceed",
                                        "add --gpu-compute, for example --gpu-compute 30%"));
  }
  return plan;
}

}  // namespace assay::cli
