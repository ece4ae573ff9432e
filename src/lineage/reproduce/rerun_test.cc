#include "lineage/reproduce/rerun.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace assay::lineage {
namespace {

std::vector<std::string> split(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// The changed command as text, or the error's line.
std::string changed(const std::string& command, const std::string& sets) {
  const auto words = replace_values(split(command), split(sets));
  return words ? fmt::format("{}", fmt::join(*words, " ")) : words.error().line();
}

TEST(Rerun, ReplacesEveryWayToGiveAValue) {
  EXPECT_EQ(changed("train --lr 0.1 data", "lr=0.2"), "train --lr 0.2 data");
  EXPECT_EQ(changed("train --lr=0.1 data", "lr=0.2"), "train --lr=0.2 data");
  EXPECT_EQ(changed("train -n 3 data", "n=4"), "train -n 4 data");
  EXPECT_EQ(changed("train lr=0.1 data", "lr=0.2"), "train lr=0.2 data");
  EXPECT_EQ(changed("train model.lr=0.1", "model.lr=0.2"), "train model.lr=0.2");
  EXPECT_EQ(changed("train --lr -0.1", "lr=-2"), "train --lr -2");
  EXPECT_EQ(changed("train --lr -.5", "lr=1"), "train --lr 1");
}

TEST(Rerun, DashesAndUnderscoresAreTheSame) {
  EXPECT_EQ(changed("train --batch-size 3", "batch_size=4"), "train --batch-size 4");
  EXPECT_EQ(changed("train --batch_size 3", "batch-size=4"), "train --batch_size 4");
  EXPECT_EQ(changed("train --lr 3", "--lr=4"), "train --lr 4");
}

TEST(Rerun, ReplacesEveryOccurrenceAndTheLastSetCounts) {
  EXPECT_EQ(changed("sh --k 1 --k 2 k=3", "k=9"), "sh --k 9 --k 9 k=9");
  EXPECT_EQ(changed("sh --k 1", "k=2 k=3"), "sh --k 3");
  EXPECT_EQ(changed("sh --a 1 --b 2", "a=b=c b=a"), "sh --a b=c --b a");
}

TEST(Rerun, ValuesMayBeEmptyAndHoldEqualsSigns) {
  EXPECT_EQ(changed("x --k=a=b", "k="), "x --k=");
  EXPECT_EQ(changed("x --k a", "k=c=d"), "x --k c=d");
}

TEST(Rerun, NeverTheProgramAndNeverAFlag) {
  EXPECT_EQ(changed("k=1 --v 2", "k=3"),
            "--set k: the stage's command has no value for 'k'; it has values for: v");
  EXPECT_EQ(changed("x --flag --lr 2 --last", "flag=1"),
            "--set flag: the stage's command has no value for 'flag'; it has values for: lr");
  EXPECT_EQ(changed("x --flag -- data", "flag=1"),
            "--set flag: the stage's command has no named values;"
            " run the changed command itself: assay run -- …");
}

TEST(Rerun, SetsMustBeAssignments) {
  EXPECT_EQ(changed("x --k 1", "k"), "--set k: is not KEY=VALUE; for example --set lr=0.1");
  EXPECT_EQ(changed("x --k 1", "=k"), "--set =k: is not KEY=VALUE; for example --set lr=0.1");
}

TEST(Rerun, ASentenceWithAnEqualsSignIsNoAssignment) {
  const std::vector<std::string> words = {"sh", "-c", "a = b; x=1 y"};
  EXPECT_FALSE(replace_values(words, std::vector<std::string>{"a=2"}));
  EXPECT_EQ((*replace_values(words, std::vector<std::string>{"c=true"}))[2], "true");
}

}  // namespace
}  // namespace assay::lineage
