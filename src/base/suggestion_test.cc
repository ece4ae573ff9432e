// Edit distance against its definition; which suggestion is made for which mistake.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/suggestion.h"

namespace assay::base {
namespace {

using Names = std::vector<std::string>;

// The textbook definition of optimal string alignment, not optimised.
std::size_t by_definition(std::string_view a, std::string_view b) {
  if (a.empty() || b.empty()) return a.size() + b.size();
  const auto without_last = [](std::string_view text, std::size_t count) {
    return text.substr(0, text.size() - count);
  };
  const std::string_view a1 = without_last(a, 1);
  const std::string_view b1 = without_last(b, 1);
  std::size_t best = std::min({by_definition(a1, b) + 1, by_definition(a, b1) + 1,
                               by_definition(a1, b1) + (a.back() == b.back() ? 0 : 1)});
  if (a.size() > 1 && b.size() > 1 && a.back() == b1.back() && a1.back() == b.back()) {
    best = std::min(best, by_definition(without_last(a, 2), without_last(b, 2)) + 1);
  }
  return best;
}

std::string short_word() {
  const auto size = *rc::gen::inRange<std::size_t>(0, 7);
  return *rc::gen::container<std::string>(size, rc::gen::inRange<char>('a', 'd'));
}

TEST(EditDistance, Examples) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("layers", "lyaers"), 1U);
  EXPECT_EQ(edit_distance("ca", "abc"), 3U);  // 2 if a swapped pair could be edited again
  EXPECT_EQ(edit_distance("Layers", "layers"), 1U);
}

TEST(EditDistance, CountsCharactersNotBytes) {
  EXPECT_EQ(edit_distance("für", "fur"), 1U);
  EXPECT_EQ(edit_distance("日本", "本日"), 1U);
  EXPECT_EQ(edit_distance("\xff", "\xfe"), 1U);
}

RC_GTEST_PROP(EditDistance, EqualsItsDefinition, ()) {
  const std::string a = short_word();
  const std::string b = short_word();
  RC_ASSERT(edit_distance(a, b) == by_definition(a, b));
}

RC_GTEST_PROP(EditDistance, IsSymmetricAndBounded, (const std::string& a, const std::string& b)) {
  const std::size_t distance = edit_distance(a, b);
  RC_ASSERT(distance == edit_distance(b, a));
  RC_ASSERT(distance <= std::max(a.size(), b.size()));
  RC_ASSERT((distance == 0) == (a == b));
  RC_ASSERT(edit_distance(a, a) == 0U);
}

TEST(Nearest, FindsTypos) {
  const Names keys = {"layers", "heads", "hidden", "vocab"};
  EXPECT_EQ(nearest("layer", keys), "layers");
  EXPECT_EQ(nearest("LAYERS", keys), "layers");
  EXPECT_EQ(nearest("haeds", keys), "heads");
  EXPECT_EQ(nearest("hiden", keys), "hidden");
  EXPECT_EQ(nearest("optimizer", keys), std::nullopt);
  EXPECT_EQ(nearest("", keys), std::nullopt);
  EXPECT_EQ(nearest("layers", Names{}), std::nullopt);
}

TEST(Nearest, AllowsOneEditInThree) {
  EXPECT_EQ(nearest("abcdef", Names{"abcdxy"}), "abcdxy");
  EXPECT_EQ(nearest("abcdef", Names{"abcxyz"}), std::nullopt);
  EXPECT_EQ(nearest("dp", Names{"tp"}), "tp");
  EXPECT_EQ(nearest("x", Names{"y"}), std::nullopt);  // nothing in common
}

TEST(Nearest, FindsAbbreviationsAndMissingSections) {
  EXPECT_EQ(nearest("hid", Names{"heads", "hidden_size"}), "hidden_size");
  EXPECT_EQ(nearest("hi", Names{"hidden_size"}), std::nullopt);
  EXPECT_EQ(nearest("layers", Names{"model.layers", "model.heads"}), "model.layers");
  EXPECT_EQ(nearest("lr", Names{"optimizer.lr_max"}), std::nullopt);
}

TEST(Nearest, RanksAndBreaksTiesTheSameWayInAnyOrder) {
  EXPECT_EQ(nearest("batc", Names{"bath", "batch"}), "batch");  // a tie: alphabetical order
  EXPECT_EQ(nearest("batc", Names{"batch", "bath"}), "batch");
  EXPECT_EQ(nearest("GB", Names{"Gb", "gB", "GiB"}), "Gb");
  EXPECT_EQ(nearest("Size", Names{"size", "side"}), "size");
  EXPECT_EQ(nearest("size", Names{"side", "model.size"}), "model.size");
  EXPECT_EQ(nearest("warm", Names{"warmup_steps", "warmup"}), "warmup");
}

TEST(Suggestion, NamesTheNearestOrTheFew) {
  const Names few = {"adamw", "sgd", "muon"};
  EXPECT_EQ(suggestion("adam", few), "did you mean 'adamw'?");
  EXPECT_EQ(suggestion("lion", few), "expected one of: adamw, sgd, muon");
  EXPECT_EQ(suggestion("lion", Names{"sgd"}), "expected 'sgd'");
  EXPECT_EQ(suggestion("lion", Names{}), "");
  EXPECT_EQ(suggestion("zz", Names{"a", "b", "c", "d", "e", "f", "g", "h"}),
            "expected one of: a, b, c, d, e, f, g, h");
  EXPECT_EQ(suggestion("zz", Names{"a", "b", "c", "d", "e", "f", "g", "h", "i"}), "");
}

// A quoted "model.layers" at the top of a file is unknown there, though a key reads like that.
TEST(Suggestion, IsNeverWhatWasWritten) {
  EXPECT_EQ(nearest("layers", Names{"layers"}), std::nullopt);
  EXPECT_EQ(nearest("layers", Names{"Layers", "layers"}), std::nullopt);
  EXPECT_EQ(suggestion("sgd", Names{"sgd"}), "");
  EXPECT_EQ(suggestion("sgd", Names{"adamw", "sgd"}), "");
}

}  // namespace
}  // namespace assay::base
