// A hundred runs at once in one project: all recorded, each complete, each with its own files.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <memory>
#include <set>

#include "chaos/project.h"

namespace assay::chaos {
namespace {

using base::Json;

TEST(Concurrent, AHundredRuns) {
  constexpr int kRuns = 100;
  Project project;
  std::vector<std::unique_ptr<Background>> runs;
  for (int i = 0; i < kRuns; ++i) {
    const std::string number = std::to_string(i);
    runs.push_back(std::make_unique<Background>(
        std::vector<std::string>{support::program(), "run", "--", "sh", "-c",
                                 "cat in.txt > out_" + number + "; echo " + number},
        project.path()));
  }
  for (int i = 0; i < kRuns; ++i) {
    const auto status = runs[static_cast<std::size_t>(i)]->wait(std::chrono::seconds(60));
    ASSERT_TRUE(status) << "run " << i << " hangs";
    EXPECT_EQ(*status, 0) << runs[static_cast<std::size_t>(i)]->err();
    EXPECT_EQ(runs[static_cast<std::size_t>(i)]->out(), std::to_string(i) + "\n");
  }
  EXPECT_EQ(project.integrity(), "ok");
  const Json log = Json::parse(project.assay({"log", "--all", "--json"}).out, nullptr, false);
  const Json& recorded = log.is_object() ? log["runs"] : log;
  ASSERT_EQ(recorded.size(), static_cast<std::size_t>(kRuns));
  std::set<std::string> made;
  for (const Json& run : recorded) {
    const Json shown =
        Json::parse(project.assay({"show", run["id"].dump(), "--json"}).out, nullptr, false);
    ASSERT_TRUE(shown.is_object()) << run.dump();
    EXPECT_EQ(shown["run"]["status"], "done");
    EXPECT_TRUE(shown["run"]["complete"].get<bool>()) << shown["missed"].dump();
    ASSERT_EQ(shown["inputs"].size(), 1U) << shown.dump();
    int own = 0;  // besides the files to which its standard output and error went
    for (const Json& file : shown["outputs"]) {
      const auto path = file["path"].get<std::string>();
      if (!path.starts_with(project.path().string())) continue;
      made.insert(path);
      ++own;
    }
    EXPECT_EQ(own, 1) << shown.dump();
  }
  EXPECT_EQ(made.size(), static_cast<std::size_t>(kRuns));
}

}  // namespace
}  // namespace assay::chaos
