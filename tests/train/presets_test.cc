#include "train/every_preset.h"

#include "train/cpu/cpu_backend.h"

namespace assay::train {
namespace {

TEST(Presets, AreExecutedOnACpuAsTheirListsSay) {
#ifdef __SANITIZE_ADDRESS__
  constexpr std::int64_t kMost = std::int64_t{256} << 20U;
  constexpr int kLeast = 2;
#else
  constexpr std::int64_t kMost = std::int64_t{3} << 30U;
  constexpr int kLeast = 4;  // tiny and gpt2-124m
#endif
  EXPECT_GE(
      execute_every_preset([] { return cpu::make_cpu_backend(); }, spec::Precision::kFp32, kMost),
      kLeast);
}

}  // namespace
}  // namespace assay::train
