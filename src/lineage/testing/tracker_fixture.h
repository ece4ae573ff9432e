// TrackerFixture: what the tests of the tracker share. Every test runs in both manners of telling,
// with and without stamps of new files.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lineage/testing/scene.h"

namespace assay::lineage::testing {

// "created", or "renamed from NAME".
inline std::string text_of(const store::Output& output) {
  static const std::map<store::OutputStatus, std::string> kNames = {
      {store::OutputStatus::kCreated, "created"},
      {store::OutputStatus::kModified, "modified"},
      {store::OutputStatus::kRenamed, "renamed"},
      {store::OutputStatus::kLinked, "linked"},
      {store::OutputStatus::kDeleted, "deleted"}};
  return kNames.at(output.status) + (output.from.empty() ? "" : " from " + output.from);
}

// "NAME: STATUS = CONTENT" where the content is looked up among what the test wrote.
inline std::vector<std::string> told(const Recorded& recorded,
                                     const std::vector<std::string>& contents) {
  const auto content = [&](const std::optional<hash::Digest>& digest) -> std::string {
    if (!digest) return "-";
    for (const std::string& text : contents) {
      if (digest_of(text) == *digest) return text;
    }
    return "unknown content";
  };
  std::vector<std::string> lines;
  for (const auto& [name, input] : recorded.inputs) {
    lines.push_back("in " + name + " = " + content(input.blake3));
  }
  for (const auto& [name, output] : recorded.outputs) {
    lines.push_back("out " + name + ": " + text_of(output) + " = " + content(output.blake3));
  }
  for (const auto& missed : recorded.missing) lines.push_back("missed " + missed.what);
  return lines;
}

class TrackerFixture : public ::testing::TestWithParam<Manner> {
 protected:
  void SetUp() override { scene.manner = GetParam(); }
  std::vector<std::string> end() {
    return told(scene.finish(), {"one", "two", "onetwo", "", "xyz"});
  }
  Scene scene;
};

inline auto all_manners() {
  return ::testing::Values(Manner{true, true}, Manner{true, false}, Manner{false, true},
                           Manner{false, false});
}

}  // namespace assay::lineage::testing
