#include "train/start_up.h"

#include <gtest/gtest.h>

#include "base/testing/fake_clock.h"

namespace assay::train {
namespace {

TEST(StartUp, AddsUpToTheTimeThatPassed) {
  base::FakeClock clock;
  std::vector<std::string> shown;
  StartUp startup(
      0.5,
      [&](std::string_view description, double seconds) {
        shown.push_back(std::string(description) + " " +
                        std::to_string(std::lround(seconds * 1000)));
      },
      clock);
  clock.advance_ms(100);  // between parts: in the sum, and in no part
  startup.begin("gpu", "opening the GPU");
  clock.advance_ms(1000);
  startup.begin("weights", "making weights");
  clock.advance_ms(200);
  startup.begin("gpu", "opening the GPU");
  clock.advance_ms(30);
  EXPECT_NEAR(startup.seconds(), 1.83, 1e-9);
  startup.end();
  clock.advance_ms(5000);
  startup.begin("later", "does not count");
  ASSERT_EQ(startup.parts().size(), 3U);
  EXPECT_EQ(startup.parts()[0].name, "process");
  EXPECT_NEAR(startup.parts()[0].seconds, 0.5, 1e-9);
  EXPECT_EQ(startup.parts()[1].name, "gpu");
  EXPECT_NEAR(startup.parts()[1].seconds, 1.03, 1e-9);
  EXPECT_NEAR(startup.parts()[2].seconds, 0.2, 1e-9);
  EXPECT_NEAR(startup.seconds(), 1.83, 1e-9);
  EXPECT_EQ(shown, (std::vector<std::string>{"opening the GPU 600", "making weights 1600",
                                             "opening the GPU 1800"}));
}

}  // namespace
}  // namespace assay::train
