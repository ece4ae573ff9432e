// TrackerFixture: shared by the tracker's tests. Every test runs in all collector modes.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lineage/testing/tracker_scenario.h"

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

// "NAME: STATUS = CONTENT", with the content looked up among `contents`.
inline std::vector<std::string> report_lines(const RecordedResults& recorded,
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

class TrackerFixture : public ::testing::TestWithParam<CollectorMode> {
 protected:
  void SetUp() override { scenario.mode = GetParam(); }
  std::vector<std::string> end() {
    return report_lines(scenario.finish(), {"one", "two", "onetwo", "", "xyz"});
  }
  TrackerScenario scenario;
};

inline auto all_modes() {
  return ::testing::Values(CollectorMode{true, true}, CollectorMode{true, false},
                           CollectorMode{false, true}, CollectorMode{false, false});
}

}  // namespace assay::lineage::testing
