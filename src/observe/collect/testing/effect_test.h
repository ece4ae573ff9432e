// EffectTest: the fixture of the tests of effect_of(). Every call that is predicted is also made,
// and its result is compared. Every test runs twice: with the short cut of RemoteView, and without,
// as after a chroot.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "observe/collect/call/remote_path.h"
#include "observe/collect/testing/probe.h"

namespace assay::collect::testing {

using Lines = std::vector<std::string>;

class EffectTest : public ::testing::TestWithParam<bool> {
 protected:
  EffectTest() { RemoteView::views_may_differ(GetParam()); }
  ~EffectTest() override { RemoteView::views_may_differ(false); }

  ProbeFolder place;

  Lines effect_lines(
      const std::function<void()>& act, const std::function<void()>& prepare = [] {}) {
    Lines lines = place.effect_lines(act, prepare);
    if (place.seen.effect) {
      EXPECT_EQ(place.seen.effect->will_succeed, place.seen.result >= 0)
          << place.seen.result << " for " << ::testing::PrintToString(lines);
    }
    return lines;
  }
};

inline std::string way(const ::testing::TestParamInfo<bool>& info) {
  return info.param ? "StepByStep" : "Fast";
}

}  // namespace assay::collect::testing
