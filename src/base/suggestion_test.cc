// What counts as a typo, against the definition of edit distance; which suggestion is made for
// which mistake.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
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

// Of letters a to c, so that words are often near each other by chance.
std::string short_word() {
  const auto size = *rc::gen::inRange<std::size_t>(3, 7);
  return *rc::gen::container<std::string>(size, rc::gen::inRange<char>('a', 'd'));
}

std::string edited(std::string word) {
  for (int edits = *rc::gen::inRange(1, 5); edits > 0 && word.size() > 1; --edits) {
    const auto at = *rc::gen::inRange<std::size_t>(0, word.size() - 1);
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        word.insert(at, 1, 'a');
        break;
      case 1:
        word.erase(at, 1);
        break;
      case 2:
        word[at] = 'b';
        break;
      default:
        std::swap(word[at], word[at + 1]);
    }
  }
  return word;
}

// A typo is at most one edit in three characters.
bool is_typo(std::string_view name, std::string_view candidate) {
  const std::size_t edits = by_definition(name, candidate);
  return edits <= std::max<std::size_t>(1, name.size() / 3) &&
         edits < std::max(name.size(), candidate.size());
}

RC_GTEST_PROP(Nearest, TyposAreThoseOfTheDefinition, ()) {
  const std::string name = short_word();
  const std::string candidate = edited(name);
  if (candidate.starts_with(name)) return;  // the same, or what a prefix stands for
  RC_ASSERT(nearest(name, Names{candidate}).has_value() == is_typo(name, candidate));
}

RC_GTEST_PROP(Nearest, TheNearerTypoIsMeant, ()) {
  const std::string name = short_word();
  const std::string a = edited(name);
  const std::string b = edited(name);
  if (a == name || b == name || !is_typo(name, a) || !is_typo(name, b)) return;
  const auto ranked = [&](const std::string& word) {
    return std::pair(by_definition(name, word), word);
  };
  RC_ASSERT(nearest(name, Names{a, b}) == std::min(ranked(a), ranked(b)).second);
}

TEST(Nearest, CountsEdits) {
  EXPECT_EQ(nearest("kitten", Names{"sitten"}), "sitten");
  EXPECT_EQ(nearest("kitten", Names{"sitting"}), std::nullopt);       // 3
  EXPECT_EQ(nearest("layers", Names{"lyaers", "luaers"}), "lyaers");  // a swap is one
  EXPECT_EQ(nearest("ca", Names{"abc"}),
            std::nullopt);  // 2 if a swapped pair could be edited again
  EXPECT_EQ(nearest("layers", Names{"Layerz", "layerz"}), "layerz");
}

TEST(Nearest, CountsCharactersNotBytes) {
  EXPECT_EQ(nearest("für", Names{"fur"}), "fur");
  EXPECT_EQ(nearest("日本", Names{"本日"}), "本日");
  EXPECT_EQ(nearest("a\xff", Names{"a\xfe"}), "a\xfe");
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
