// EffectTest: the fixture of the tests of effect_of(). Every call that was judged is also made, and
// the kernel says whether it succeeded.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "observe/collect/testing/probe.h"

namespace assay::collect::testing {

using Lines = std::vector<std::string>;

class EffectTest : public ::testing::Test {
 protected:
  Place place;

  Lines told(
      const std::function<void()>& act, const std::function<void()>& prepare = [] {}) {
    Lines lines = place.told(act, prepare);
    if (place.seen.effect) {
      EXPECT_EQ(place.seen.effect->will_succeed, place.seen.result >= 0)
          << place.seen.result << " for " << ::testing::PrintToString(lines);
    }
    return lines;
  }
};

}  // namespace assay::collect::testing
