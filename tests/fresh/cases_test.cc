// Changes that make a stage stale or unsure, each under every tracer that works here: new names in
// listed folders, files that were only asked about, and what others change while a stage runs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/testing/temp_dir.h"
#include "support/process.h"

namespace assay::fresh {
namespace {

using base::Json;

struct Change {
  std::string name;
  std::string setup;
  std::string stage;  // for sh
  std::string change;
  std::string state = "stale";
  bool meanwhile = false;  // the change is made while the stage runs
};

void PrintTo(const Change& one, std::ostream* out) {
  *out << one.stage << " | " << one.change;
}

const std::vector<Change>& changes() {
  static const std::vector<Change> all = {
      {"Nothing", "mkdir d; echo 1 > d/a; ln -s a d/l", "ls d > o; cat d/* >> o; [ -e d/a ]", ":",
       "fresh"},
      {"NewOfTheKind", "mkdir d; echo 1 > d/1.csv", "cat d/*.csv > o", "echo 2 > d/2.csv"},
      {"NewOfAnother", "mkdir d; echo 1 > d/1.txt", "cat d/* > o", "echo 2 > d/2.csv", "unsure"},
      {"NewAndCounted", "mkdir d; echo 1 > d/1.txt", "ls d | wc -l > o", "echo 2 > d/2.csv"},
      {"NewForFind", "mkdir d; echo 1 > d/1", "find d -type f | xargs cat > o", "echo 2 > d/2"},
      {"NewForPython", "mkdir d", "/usr/bin/python3 -c 'import os; print(os.listdir(\"d\"))' > o",
       "echo 2 > d/2"},
      {"NewBesidePython", "echo 1 > s",
       "/usr/bin/python3 -c 'import glob; print(glob.glob(\"*.csv\"))' > o", "echo 2 > 2.csv"},
      {"FolderToReturnTo", "mkdir d; echo 1 > d/1", "find d -type f > o", "echo 2 > 2", "fresh"},
      {"GoneExistence", "touch done", "[ -e done ] && echo y > o || echo n > o", "rm done"},
      {"GoneFolder", "mkdir v2", "[ -d v2 ] && echo y > o || echo n > o", "rmdir v2"},
      {"NowAFile", "mkdir v2", "[ -d v2 ] && echo y > o || echo n > o", "rmdir v2; touch v2"},
      {"OtherSize", "echo 1 > f", "stat -c %s f > o", "echo 123 > f"},
      {"SameSize", "echo 1 > f", "stat -c %s f > o", "echo 2 > f", "fresh"},
      {"OtherTarget", "ln -s a cur", "readlink cur > o", "ln -sfn b cur"},
      {"BecameALink", "mkdir d; echo 1 > d/a.csv", "find d -type f -exec cat {} + > o",
       "mv d/a.csv s; ln -s ../s d/a.csv"},
      {"ChangesAgain", "echo 1 > f", "wc -c < f >> f", ":", "unsure"},
      {"AddedMeanwhile", "mkdir d; echo 1 > d/1.csv", "cat d/*.csv > o", "echo 2 > d/2.csv",
       "stale", true},
      {"RemovedMeanwhile", "mkdir d; touch d/1 d/2", "ls d > o", "rm d/2", "unsure", true},
      {"AppearedMeanwhile", ":", "[ -e opt ] && echo y > o || echo n > o", "echo x > opt", "stale",
       true},
      {"RelinkedMeanwhile", "echo 1 > a; echo 2 > b; ln -s a l", "cat l > o", "ln -sfn b l",
       "stale", true},
  };
  return all;
}

class After : public ::testing::TestWithParam<Change> {};

TEST_P(After, TheStageIs) {
  const Change& one = GetParam();
  const Json answer = Json::parse(support::run({{support::program(), "tracers", "--json"}}).out);
  for (const Json& tracer : answer["tracers"]) {
    if (tracer["available"] != true) continue;
    const std::string name = tracer["name"];
    SCOPED_TRACE(name);
    const base::testing::TempDir folder;
    const std::filesystem::path project = folder.path() / "project";
    std::filesystem::create_directory(project);
    // What is outside the project does not count.
    const std::string wait =
        one.meanwhile ? "; mkdir ../s/began; until [ -d ../s/go ]; do sleep .01; done" : "";
    const std::string run = fmt::format("$A run -q --tracer {} -- bash -c \"$STAGE\"", name);
    const std::string change =
        one.meanwhile
            ? fmt::format(
                  "{} & until [ -d ../s/began ]; do sleep .01; done; sleep .03; {}; mkdir "
                  "../s/go; wait",
                  run, one.change)
            : run + "; " + one.change;
    const auto outcome =
        support::run({{"env", "A=" + support::program(), "STAGE=" + one.stage + wait + "; true",
                       "bash", "-c", "mkdir ../s; $A init -q; " + one.setup + "; " + change},
                      "",
                      project});
    const Json status =
        Json::parse(support::run({{support::program(), "status", "--json"}, "", project}).out);
    ASSERT_EQ(status["stages"].size(), 1U) << outcome.out << outcome.err;
    EXPECT_EQ(status["stages"][0]["state"], one.state) << status.dump(2);
    const int strict =
        support::run({{support::program(), "status", "--strict"}, "", project}).exit_code;
    EXPECT_EQ(strict, one.state == "fresh" ? 0 : 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Change, After, ::testing::ValuesIn(changes()),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace assay::fresh
