#include "plot/labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/utf8.h"

namespace assay::plot {
namespace {

using ::testing::ElementsAre;

TEST(Labels, WideLettersAreWider) {
  EXPECT_GT(text_width("WW", 12), text_width("ii", 12));
  EXPECT_DOUBLE_EQ(text_width("abc", 24), 2 * text_width("abc", 12));
  EXPECT_GT(text_width("\x01", 12), text_width("a", 12));  // shown as \x01
}

TEST(Labels, LongTextIsCutInTheMiddle) {
  EXPECT_EQ(fitted("short", 12, 100), "short");
  const std::string cut = fitted("/a/path/that/goes/on/and/on/model.bin", 12, 100);
  EXPECT_TRUE(cut.starts_with("/a/p") && cut.ends_with("l.bin")) << cut;
  EXPECT_NE(cut.find("…"), std::string::npos);
}

RC_GTEST_PROP(LabelsProperty, FittedTextFitsAndIsWhole, (const std::string& text)) {
  const double width = *rc::gen::inRange(20, 300);
  const std::string fit = fitted(text, 12, width);
  RC_ASSERT(text_width(fit, 12) <= width);
  RC_ASSERT(base::is_utf8(fit));
}

TEST(FreeSpace, PrefersTheRightAndMovesOrGivesUp) {
  FreeSpace space({0, 0, 200, 100});
  const auto right = space.place(100, 50, 4, "abc", 10);
  ASSERT_TRUE(right);
  EXPECT_GT(right->x, 104);
  const auto moved = space.place(100, 50, 4, "abc", 10);
  ASSERT_TRUE(moved);
  EXPECT_NE(std::pair(moved->x, moved->y), std::pair(right->x, right->y));
  space.take({0, 0, 200, 100});
  EXPECT_FALSE(space.place(100, 50, 4, "abc", 10));
}

RC_GTEST_PROP(FreeSpaceProperty, LabelsTouchNeitherEachOtherNorTheEdge, ()) {
  constexpr double kSize = 11;
  const Box all{0, 0, 300, 200};
  FreeSpace space(all);
  std::vector<Box> placed;
  const int labels = *rc::gen::inRange(1, 40);
  for (int i = 0; i < labels; ++i) {
    const std::string text(static_cast<std::size_t>(*rc::gen::inRange(1, 12)), 'm');
    const auto place =
        space.place(*rc::gen::inRange(0, 300), *rc::gen::inRange(0, 200), 4, text, kSize);
    if (!place) continue;
    const Box box{place->x, place->y - 0.7 * kSize, place->x + text_width(text, kSize), place->y};
    RC_ASSERT(box.inside(all));
    for (const Box& other : placed) RC_ASSERT(!box.overlaps(other));
    placed.push_back(box);
  }
}

TEST(Spread, MovesOnlyWhatIsTooNear) {
  EXPECT_THAT(spread({50, 10, 52}, 10, 0, 100), ElementsAre(50, 10, 60));
  EXPECT_THAT(spread({98, 99}, 10, 0, 100), ElementsAre(90, 100));
  EXPECT_THAT(spread({}, 10, 0, 100), ElementsAre());
}

RC_GTEST_PROP(SpreadProperty, KeepsDistanceOrderAndBounds, ()) {
  const auto wanted =
      *rc::gen::map(rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 300)),
                    [](const auto& v) { return std::vector<double>(v.begin(), v.end()); });
  RC_PRE(wanted.size() <= 30U);
  const std::vector<double> places = spread(wanted, 10, 0, 300);
  for (std::size_t i = 0; i < places.size(); ++i) {
    RC_ASSERT(places[i] >= 0 && places[i] <= 300);
    for (std::size_t j = 0; j < i; ++j) {
      RC_ASSERT(std::abs(places[i] - places[j]) >= 10 - 1e-9);
      if (wanted[i] != wanted[j]) RC_ASSERT((wanted[i] < wanted[j]) == (places[i] < places[j]));
    }
  }
}

}  // namespace
}  // namespace assay::plot
