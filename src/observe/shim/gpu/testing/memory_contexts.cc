// Actions about contexts, streams and kernels.
#include "observe/shim/gpu/testing/memory_script.h"

namespace memory {
namespace {

// A kernel of the given nanoseconds, for a real driver.
constexpr const char* kSpin = R"(
.version 6.0
.target sm_60
.address_size 64
.visible .entry spin(.param .u64 span) {
  .reg .u64 %t<4>;
  .reg .pred %p;
  ld.param.u64 %t0, [span];
  mov.u64 %t1, %globaltimer;
AGAIN:
  mov.u64 %t2, %globaltimer;
  sub.u64 %t3, %t2, %t1;
  setp.lt.u64 %p, %t3, %t0;
  @%p bra AGAIN;
  ret;
}
)";

int set_device(State& state, const Action& action) {
  state.call("cuInit", 0U);
  const auto device = static_cast<int>(action.number(0));
  state.call("cuDevicePrimaryCtxRetain", &state.context, device);
  return state.call("cuCtxSetCurrent", state.context);
}

int spin(State& state, const Action& action) {
  void* module = nullptr;
  void* function = nullptr;
  std::uint64_t span = action.number(0) * 1'000'000;
  void* arguments[] = {&span};
  if (const int result = state.call("cuModuleLoadData", &module, kSpin)) return result;
  if (const int result = state.call("cuModuleGetFunction", &function, module, "spin")) {
    return result;
  }
  return state.call("cuLaunchKernel", function, 1U, 1U, 1U, 1U, 1U, 1U, 0U, state.stream,
                    &arguments[0], static_cast<void**>(nullptr));
}

}  // namespace

Actions context_actions(State& state) {
  return {
      {"ctx", [&](const Action&) { return state.call("cuCtxCreate_v2", &state.context, 0U, 0); }},
      {"destroy", [&](const Action&) { return state.call("cuCtxDestroy_v2", state.context); }},
      {"primary",
       [&](const Action&) { return state.call("cuDevicePrimaryCtxRetain", &state.context, 0); }},
      {"release", [&](const Action&) { return state.call("cuDevicePrimaryCtxRelease_v2", 0); }},
      {"reset", [&](const Action&) { return state.call("cuDevicePrimaryCtxReset_v2", 0); }},
      {"module",
       [&](const Action&) {
         void* module = nullptr;
         return state.call("cuModuleLoadData", &module, kSpin);
       }},
      {"device", [&](const Action& action) { return set_device(state, action); }},
      {"stream", [&](const Action&) { return state.call("cuStreamCreate", &state.stream, 1U); }},
      {"spin", [&](const Action& action) { return spin(state, action); }},
      // The variant that also works with per-thread streams.
      {"sync",
       [&](const Action&) { return state.call("cuCtxSynchronize", static_cast<void*>(nullptr)); }},
  };
}

}  // namespace memory
