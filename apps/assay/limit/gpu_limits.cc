#include "assay/limit/gpu_limits.h"

#include <algorithm>
#include <cstdlib>

#include "base/process/environment.h"
#include "observe/collect/gpu_count.h"

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
  return base::usage_error("run", what, hint);
}

}  // namespace

void add_limit_options(share::LimitWords& words, std::vector<Option>& options) {
  options.push_back({"--gpu-memory",
                     "memory that the run may hold on each GPU, all its processes together",
                     &words.memory,
                     {},
                     "SIZE"});
  options.push_back(
      {"--gpu-compute", "its share of each GPU's time", &words.compute, {}, "PERCENT"});
  options.push_back({"--gpu",
                     "limits of one GPU: an index or UUID, then memory, compute, priority, borrow",
                     &words.devices,
                     {},
                     "N=memory:SIZE,compute:PERCENT"});
  options.push_back(
      {"--gpu-borrow", "use more than the share while nobody else wants the GPU", &words.borrow});
  options.push_back({"--priority", "who has the GPU first: high, normal or low", &words.priority,
                     [] {
                       return std::vector<std::string>{"high", "normal", "low"};
                     },
                     "LEVEL"});
}

share::Surroundings surroundings_here() {
  share::Surroundings here;
  here.cuda = {.visible_devices = variable("CUDA_VISIBLE_DEVICES"),
               .device_order = variable("CUDA_DEVICE_ORDER")};
  const auto watch = machine::GpuWatch::open();
  if (watch) {
    here.gpus = watch->gpus();
  } else {
    here.why = watch.error().line();
  }
  return here;
}

base::Result<share::LimitPlan> limits_of_run(const share::LimitWords& words) {
  if (words.empty()) return share::LimitPlan{};
  const std::optional<std::string> said = variable("ASSAY_GPU");
  if (said == "0") {
    return base::fail(cannot("GPU limits cannot be kept with ASSAY_GPU=0",
                             "take it out of the environment, or leave the limits out"));
  }
  if (!collect::gpu_library_there()) {
    return base::fail(cannot("GPU limits need libassay-gpu.so, which is not there",
                             "install it beside the program or in ../lib/assay"));
  }
  share::Surroundings here = surroundings_here();
  here.unchecked_allowed = said == "1";
  ASSAY_TRY(share::LimitPlan plan, share::plan_limits("run", words, here));
  if (!collect::gpu_wanted(base::Environment::from_current())) {
    return base::fail(cannot("GPU limits cannot be kept: the loader finds no libcuda.so.1",
                             "ASSAY_GPU=1 if the command brings its own"));
  }
  const bool shared = has_share(plan.all) ||
                      std::any_of(plan.devices.begin(), plan.devices.end(),
                                  [](const auto& device) { return has_share(device.limits); });
  if (words.borrow && !shared) {
    return base::fail(base::usage_error("run --gpu-borrow", "there is no share to go beyond",
                                        "add --gpu-compute, for example --gpu-compute 30%"));
  }
  return plan;
}

}  // namespace assay::cli
