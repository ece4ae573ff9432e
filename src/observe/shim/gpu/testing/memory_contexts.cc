// Words about contexts, streams and kernels.
#include "observe/shim/gpu/testing/memory_words.h"

namespace memory {
namespace {

// A kernel that takes so many nanoseconds, for a real driver.
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

int set_device(State& state, const Word& word) {
  state.call("cuInit", 0U);
  const auto device = static_cast<int>(word.number(0));
  state.call("cuDevicePrimaryCtxRetain", &state.context, device);
  return state.call("cuCtxSetCurrent", state.context);
}

int spin(State& state, const Word& word) {
  void* module = nullptr;
  void* function = nullptr;
  std::uint64_t span = word.number(0) * 1'000'000;
  void* arguments[] = {&span};
  if (const int result = state.call("cuModuleLoadData", &module, kSpin)) return result;
  if (const int result = state.call("cuModuleGetFunction", &function, module, "spin")) {
    return result;
  }
  return state.call("cuLaunchKernel", function, 1U, 1U, 1U, 1U, 1U, 1U, 0U, state.stream,
                    &arguments[0], static_cast<void**>(nullptr));
}

}  // namespace

Words context_words(State& state) {
  return {
      {"ctx", [&](const Word&) { return state.call("cuCtxCreate_v2", &state.context, 0U, 0); }},
      {"destroy", [&](const Word&) { return state.call("cuCtxDestroy_v2", state.context); }},
      {"primary",
       [&](const Word&) { return state.call("cuDevicePrimaryCtxRetain", &state.context, 0); }},
      {"release", [&](const Word&) { return state.call("cuDevicePrimaryCtxRelease_v2", 0); }},
      {"reset", [&](const Word&) { return state.call("cuDevicePrimaryCtxReset_v2", 0); }},
      {"module",
       [&](const Word&) {
         void* module = nullptr;
         return state.call("cuModuleLoadData", &module, kSpin);
       }},
      {"device", [&](const Word& word) { return set_device(state, word); }},
      {"stream", [&](const Word&) { return state.call("cuStreamCreate", &state.stream, 1U); }},
      {"spin", [&](const Word& word) { return spin(state, word); }},
      // In the form that also answers where there are streams per thread.
      {"sync",
       [&](const Word&) { return state.call("cuCtxSynchronize", static_cast<void*>(nullptr)); }},
  };
}

}  // namespace memory
