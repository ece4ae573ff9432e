#include "train/every_preset.h"

#include "train/cpu/cpu_backend.h"

// Defined if the modules under test are sanitized; the tests themselves are not.
extern "C" __attribute__((weak)) void __asan_init();

namespace assay::train {
namespace {

TEST(Presets, AreExecutedOnACpuAsTheirListsSay) {
  // tiny and gpt2-124m; with sanitizers only the first.
  const std::int64_t most = __asan_init == nullptr ? std::int64_t{3} << 30U : 256 << 20U;
  const int least = __asan_init == nullptr ? 2 : 1;
  EXPECT_GE(
      execute_every_preset([] { return cpu::make_cpu_backend(); }, spec::Precision::kFp32, most),
      least);
}

}  // namespace
}  // namespace assay::train
