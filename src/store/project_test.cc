// A project that is moved or copied as one folder.
#include "store/project.h"

#include "store/run_reader.h"
#include "store/run_writer.h"
#include "store/testing/runs.h"
#include "store/testing/runs_fixture.h"

namespace assay::store {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using testing::run_of;

class ProjectMoveTest : public testing::ProjectTest {
 protected:
  // What is read of the run in a copy of the project.
  RunRecord run_in_copy(const RunRecord& run) {
    RunId id = 0;
    {
      auto store = Store::create(location_, {});
      id = *record_run(*store, run);
    }
    fs::copy(location_.project, copy_, fs::copy_options::recursive);
    auto store = Store::open(location_in(copy_), {});
    EXPECT_TRUE(store) << testing::line_of(store);
    return *load_run(*store, id);
  }

  const std::string old_ = location_.project.string();
  const std::string copy_ = (scratch() / "copy of it").string();
};

// A stage that is repeated in the copy must not write to the original.
TEST_F(ProjectMoveTest, CommandsOptionsAndEnvironmentsLeadToTheCopy) {
  RunRecord run = run_of("cp in=1 -> out=2", old_);
  run.command = {"cp",
                 old_ + "/in",
                 "--to=" + old_ + "/out",
                 "file://" + old_ + "/in",
                 "cd " + old_ + " && true",
                 old_ + "-2/in",
                 "/mnt" + old_ + "/in"};
  run.options = {"--keep=" + old_ + "/*.so"};
  run.redirects = {"0<" + old_ + "/in", "1>>" + old_ + " 2/log"};
  run.context.environment = {{"HOME", "/root"}, {"PYTHONPATH", "/lib:" + old_ + "/lib"}};
  const RunRecord there = run_in_copy(run);
  EXPECT_THAT(there.command,
              ElementsAre("cp", copy_ + "/in", "--to=" + copy_ + "/out", "file://" + copy_ + "/in",
                          "cd " + copy_ + " && true", old_ + "-2/in", "/mnt" + old_ + "/in"));
  EXPECT_THAT(there.options, ElementsAre("--keep=" + copy_ + "/*.so"));
  EXPECT_THAT(there.redirects, ElementsAre("0<" + copy_ + "/in", "1>>" + old_ + " 2/log"));
  EXPECT_EQ(there.context.environment.at("PYTHONPATH"), "/lib:" + copy_ + "/lib");
  EXPECT_EQ(there.context.environment.at("HOME"), "/root");
  EXPECT_EQ(there.directory, copy_);
  EXPECT_EQ(there.inputs.front().path, copy_ + "/in");
  EXPECT_EQ(there.outputs.front().path, copy_ + "/out");
}

TEST_F(ProjectMoveTest, FoldersBesideItThatBeginWithItsNameStay) {
  RunRecord run = run_of("cp in=1 -> out=2", old_);
  run.command = {"cp"};
  for (const char* more : {"@v1", " 2", "+", ",old", "~", " (copy)"}) {
    run.command.push_back(old_ + more + "/in");
    run.command.push_back("--from=" + old_ + more);
    run.command.push_back("cat '" + old_ + more + "/in'");
  }
  run.options = {"--keep=" + old_ + " 2/*.so"};
  run.context.environment = {{"DATA", old_ + " 2"}, {"PYTHONPATH", "/lib:" + old_ + "@v1/lib"}};
  const RunRecord there = run_in_copy(run);
  EXPECT_EQ(there.command, run.command);
  EXPECT_EQ(there.options, run.options);
  EXPECT_EQ(there.context.environment, run.context.environment);
}

}  // namespace
}  // namespace assay::store
