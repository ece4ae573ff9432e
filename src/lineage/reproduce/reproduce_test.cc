// Commands are run, recorded by the test (which lists inputs and outputs and hashes them), and
// reproduced in a copy.
#include "lineage/reproduce/plan.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/unique_fd.h"
#include "hash/file.h"
#include "lineage/record/redirects.h"
#include "lineage/reproduce/isolation.h"
#include "lineage/reproduce/run_plan.h"
#include "lineage/source/git.h"
#include "lineage/testing/checkout.h"

namespace assay::lineage {
namespace {

using testing::Checkout;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::tree_of;

class Reproduce : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const std::string& entry : project_.environment()) {
      const std::size_t equals = entry.find('=');
      environment_[entry.substr(0, equals)] = entry.substr(equals + 1);
    }
  }

  std::string at(const std::string& name) {
    return name.starts_with('/') ? name : (project_.path() / name).string();
  }
  static std::optional<hash::Digest> digest(const std::string& path) {
    const auto hashed = hash::hash_file(path);
    return hashed ? std::optional(hashed->digest) : std::nullopt;
  }

  // Runs a shell script in the project and keeps what it is said to have read and written.
  store::RunRecord& run(const std::string& script, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs) {
    store::RunRecord run;
    run.id = std::ssize(runs_) + 1;
    run.uid = std::to_string(run.id);
    run.command = {"sh", "-ec", script};
    run.directory = project_.path().string();
    run.complete = true;
    run.status = store::RunStatus::kDone;
    run.exit_code = 0;
    run.context.git = git_state(project_.path(), project_.environment()).git;
    for (const std::string& name : inputs) {
      run.inputs.push_back({at(name), digest(at(name)),
                            static_cast<std::int64_t>(std::filesystem::file_size(at(name)))});
    }
    std::map<std::string, bool> existed;
    for (const std::string& name : outputs) existed[name] = std::filesystem::exists(at(name));
    std::vector<std::string> entries = project_.environment();
    for (const auto& [name, value] : environment_) entries.push_back(name + "=" + value);
    const auto done = base::run_captured(
        {.arguments = run.command, .environment = entries, .directory = project_.path()});
    EXPECT_TRUE(done && done->ok()) << script << (done ? done->errors : "");
    for (const std::string& name : outputs) {
      run.outputs.push_back(
          {at(name), digest(at(name)),
           static_cast<std::int64_t>(std::filesystem::file_size(at(name))),
           existed[name] ? store::OutputStatus::kModified : store::OutputStatus::kCreated, ""});
    }
    runs_.push_back(std::move(run));
    return runs_.back();
  }

  ReproductionPlan plan(std::map<hash::Digest, std::vector<std::string>> places = {}) {
    return make_plan({.runs = runs_,
                      .project_root = project_.path().string(),
                      .artifact_path = "",
                      .artifact = std::nullopt,
                      .differences = {},
                      .places = std::move(places),
                      .environment = environment_});
  }
  Reproduction reproduce(const ReproductionPlan& plan, bool allow_outside = false,
                         bool own_mounts = true) {
    const auto before = tree_of(project_.path());
    const base::UniqueFd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    auto done = run_plan(
        plan, {.directory = folder_.path() / "copy",
               .environment = environment_,
               .allow_outside = allow_outside,
               .own_mounts = own_mounts,
               .output_fd = null.get(),
               .progress = [this](std::string_view line) { said_ += std::string(line) + "\n"; }});
    EXPECT_TRUE(done) << done.error().line();
    EXPECT_EQ(tree_of(project_.path()), before);  // never modified
    return done ? *std::move(done) : Reproduction{};
  }
  // "identical a.txt" for every output of every stage.
  std::vector<std::string> verdicts(const Reproduction& done) {
    std::vector<std::string> all;
    for (const StageResult& stage : done.stages) {
      for (const OutputComparison& one : stage.outputs) {
        all.push_back(std::string(to_text(one.match)) + " " +
                      std::filesystem::path(one.path).filename().string());
      }
    }
    return all;
  }

  base::testing::TempDir folder_;
  Checkout project_{folder_.path() / "project"};
  std::map<std::string, std::string> environment_;
  std::vector<store::RunRecord> runs_;
  std::string said_;
};

TEST_F(Reproduce, PipelineInADirtyCheckout) {
  project_.init();
  project_.write(".gitignore", "data/\n");
  project_.write("prepare.sh", "sort data/raw > clean\n");
  project_.commit();
  project_.write("data/raw", "b\na\n");                        // ignored: copied
  project_.write("prepare.sh", "sort -r data/raw > clean\n");  // changed, not committed
  project_.write("train.sh", "tr a-z A-Z < clean > model\n");  // untracked
  run("sh prepare.sh", {"prepare.sh", "data/raw"}, {"clean"});
  run("sh train.sh; mkdir -p out; cp model out/copy", {"train.sh", "clean"}, {"model", "out/copy"});
  // The project changes after the runs.
  project_.write("prepare.sh", "false\n");
  project_.commit("later");
  project_.write("model", "overwritten by hand\n");

  const ReproductionPlan made = plan();
  EXPECT_THAT(made.obstacles, IsEmpty());
  const Reproduction done = reproduce(made);
  EXPECT_EQ(done.undecided, "");
  EXPECT_THAT(verdicts(done), ElementsAre("identical clean", "identical model", "identical copy"));
  EXPECT_EQ(done.exit_code(), base::ExitCode::kYes);
  EXPECT_EQ(testing::content_of(folder_.path() / "copy/model"), "B\nA\n");
}

// git sets these variables in hooks.
TEST_F(Reproduce, InsideAGitHook) {
  project_.init();
  project_.write("in", "1\n");
  project_.commit();
  run("cp in out", {"in"}, {"out"});
  const std::filesystem::path git_folder = project_.path() / ".git";
  environment_["GIT_DIR"] = git_folder.string();
  environment_["GIT_INDEX_FILE"] = (git_folder / "index").string();
  environment_["GIT_OBJECT_DIRECTORY"] = (git_folder / "objects").string();
  const auto index = testing::content_of(git_folder / "index");
  const auto objects = project_.git({"count-objects"});
  EXPECT_THAT(verdicts(reproduce(plan())), ElementsAre("identical out"));
  EXPECT_EQ(testing::content_of(git_folder / "index"), index);
  EXPECT_EQ(project_.git({"count-objects"}), objects);
  // The copy has its own objects: it does not depend on the variables.
  EXPECT_NE(Checkout(folder_.path() / "copy").git({"ls-tree", "HEAD"}), "");
}

TEST_F(Reproduce, VerdictsDifferentMissingExtra) {
  project_.write("seed", "1");
  run("date +%s%N > random; test -e seen || echo x > sometimes; echo z > steady", {"seed"},
      {"random", "sometimes", "steady"});
  project_.write("seen", "");  // not recorded as an input, so not copied …
  runs_[0].command[2] = "date +%s%N > random; echo z > steady; echo y > new";
  const Reproduction done = reproduce(plan());
  EXPECT_THAT(verdicts(done), ElementsAre("different random", "missing sometimes",
                                          "identical steady", "extra new"));
  EXPECT_EQ(done.exit_code(), base::ExitCode::kNo);
}

TEST_F(Reproduce, AFileThatIsThereBeforeMustBeWrittenAgain) {
  project_.init();
  project_.write("result", "old\n");
  project_.write("in", "1\n");
  project_.commit();
  run("cp in result", {"in"}, {"result"});
  project_.commit("the result too");
  runs_[0].context.git = git_state(project_.path(), project_.environment()).git;
  EXPECT_THAT(verdicts(reproduce(plan())), ElementsAre("identical result"));
  std::filesystem::remove_all(folder_.path() / "copy");
  runs_[0].command[2] = "true";  // the committed result has the right content, but was not written
  EXPECT_THAT(verdicts(reproduce(plan())), ElementsAre("missing result"));
}

TEST_F(Reproduce, CommittedOutputsAndCommitsBetweenStages) {
  project_.init();
  project_.write("one.sh", "echo 1 > a\n");
  project_.write("a", "from another time\n");
  project_.commit();
  run("sh one.sh", {"one.sh"}, {"a"});
  project_.commit("with a");
  project_.write("two.sh", "cat a a > b\n");
  project_.commit("two");
  run("sh two.sh", {"two.sh", "a"}, {"b"});
  EXPECT_THAT(verdicts(reproduce(plan())), ElementsAre("identical a", "identical b"));
}

// The next stage must read what was made now, not the result that was committed then.
TEST_F(Reproduce, CommittedOutputsDoNotReplaceWhatWasMade) {
  project_.init();
  project_.write("one.sh", "date +%s%N > a\n");
  project_.commit();
  run("sh one.sh", {"one.sh"}, {"a"});
  project_.commit("with a");
  run("cat a a > b", {"a"}, {"b"});
  EXPECT_THAT(verdicts(reproduce(plan())), ElementsAre("different a", "different b"));
}

TEST_F(Reproduce, UnreachableCommit) {
  project_.init();
  project_.write("one.sh", "echo 1 > a\n");
  project_.commit();
  run("sh one.sh", {"one.sh"}, {"a"});
  project_.write("one.sh", "echo 2 > a\n");
  project_.git({"add", "-A"});
  project_.git({"commit", "-q", "--amend", "-m", "other"});
  EXPECT_THAT(verdicts(reproduce(plan())), ElementsAre("identical a"));
}

TEST_F(Reproduce, RemoteWhenTheRepositoryIsGone) {
  project_.init();
  project_.write("one.sh", "echo 1 > a\n");
  project_.commit();
  run("sh one.sh", {"one.sh"}, {"a"});
  project_.git({"clone", "-q", "--bare", ".", (folder_.path() / "remote").string()});
  runs_[0].context.git->remote = (folder_.path() / "remote").string();
  runs_[0].context.git->root = project_.path().string();
  std::filesystem::remove_all(project_.path() / ".git");
  EXPECT_THAT(verdicts(reproduce(plan())), ElementsAre("identical a"));
}

TEST_F(Reproduce, WithoutGitInputsAreCopied) {
  project_.write("in/a", "1\n");
  run("cat in/a in/a > out", {"in/a"}, {"out"});
  const Reproduction done = reproduce(plan());
  EXPECT_THAT(verdicts(done), ElementsAre("identical out"));
  EXPECT_THAT(tree_of(done.directory), ::testing::SizeIs(2));
}

TEST_F(Reproduce, WithoutGitLinksToInputsAreMade) {
  project_.write("v1/a", "1\n");
  std::filesystem::create_directory_symlink("v1", at("latest"));
  std::filesystem::create_symlink(at("v1/a"), at("one"));
  run("cat latest/a one > out", {"v1/a"}, {"out"});
  EXPECT_THAT(verdicts(reproduce(plan())), ElementsAre("identical out"));
}

TEST_F(Reproduce, ChangedAndMovedInputs) {
  project_.write("in", "1\n");
  run("cat in in > out", {"in"}, {"out"});
  const hash::Digest content = *digest(at("in"));
  project_.write("kept elsewhere", "1\n");
  project_.write("in", "2\n");
  const ReproductionPlan without = plan();
  ASSERT_THAT(without.obstacles, ::testing::SizeIs(1));
  EXPECT_THAT(without.obstacles[0].text, HasSubstr("in, which is changed here"));
  const Reproduction refused = reproduce(without);
  EXPECT_EQ(refused.exit_code(), base::ExitCode::kInconclusive);
  EXPECT_THAT(refused.stages, IsEmpty());

  const ReproductionPlan with = plan({{content, {at("gone"), at("kept elsewhere")}}});
  EXPECT_THAT(with.obstacles, IsEmpty());
  EXPECT_EQ(with.stages[0].externals[0].state, InputState::kElsewhere);
  EXPECT_THAT(verdicts(reproduce(with)), ElementsAre("identical out"));
}

TEST_F(Reproduce, MadeByAStageAndMovedByHand) {
  project_.write("in", "1\n");
  run("cat in in > out", {"in"}, {"out"});
  std::filesystem::rename(project_.path() / "out", project_.path() / "moved");
  run("wc -c < moved > count", {"moved"}, {"count"});
  // The move was not recorded: the file is needed as it is.
  EXPECT_EQ(plan().stages[1].externals.at(0).state, InputState::kUnchanged);
  EXPECT_THAT(verdicts(reproduce(plan())), ElementsAre("identical out", "identical count"));
}

TEST_F(Reproduce, ChangesInPlaceAreMadeInTheirOrder) {
  run("seq 3 > log", {}, {"log"});
  const auto grown = digest(at("log"));
  run("echo x >> log", {}, {"log"});
  runs_[1].outputs[0].before = grown;
  run("sed -i s/1/9/ log", {"log"}, {"log"});
  run("wc -l log > n", {"log"}, {"n"});
  const ReproductionPlan made = plan();
  EXPECT_THAT(made.obstacles, IsEmpty());
  EXPECT_THAT(verdicts(reproduce(made)),
              ElementsAre("identical log", "identical log", "identical log", "identical n"));
}

TEST_F(Reproduce, WhatWasAddedToAndIsNotThereStops) {
  project_.write("log", "by hand\n");
  const auto before = digest(at("log"));
  run("echo x >> log", {}, {"log"});
  runs_[0].outputs[0].before = before;
  const ReproductionPlan made = plan();
  ASSERT_THAT(made.obstacles, ::testing::SizeIs(1));
  EXPECT_THAT(made.obstacles[0].text, HasSubstr("log, which is changed here"));
}

TEST_F(Reproduce, AlikeContentsOfOtherStagesAreNotTaken) {
  run("echo 1 > a", {}, {"a"});
  project_.write("b", "1\n");
  run("cat b > c", {"b"}, {"c"});
  std::filesystem::remove(at("b"));
  const ReproductionPlan made = plan();
  ASSERT_THAT(made.obstacles, ::testing::SizeIs(1));
  EXPECT_THAT(made.obstacles[0].text, HasSubstr("b, which is missing here"));
}

TEST_F(Reproduce, ALogThatStagesShareIsNotCompared) {
  for (const char* name : {"a", "b"}) {
    run(std::string("echo 1 > ") + name + "; date +%s%N > log", {}, {name, "log"});
    runs_.back().command = {"sh", "-c", std::string("echo 1 > ") + name + "; date +%s%N"};
    runs_.back().redirects = {"1>" + at("log")};
  }
  const ReproductionPlan made = plan();
  EXPECT_THAT(made.notes, ElementsAre(HasSubstr("other stages write to as well"),
                                      HasSubstr("other stages write to as well")));
  EXPECT_THAT(verdicts(reproduce(made)), ElementsAre("identical a", "identical b"));
}

TEST_F(Reproduce, AbsolutePathsGoToTheCopy) {
  project_.write("in", "1\n");
  run("cat " + at("in") + " > " + at("out"), {"in"}, {"out"});
  std::filesystem::remove(at("out"));
  EXPECT_THAT(verdicts(reproduce(plan())), ElementsAre("identical out"));
  EXPECT_FALSE(std::filesystem::exists(at("out")));
}

TEST_F(Reproduce, OutputsOutsideAreNotWrittenUnasked) {
  const std::string outside = (folder_.path() / "outside").string();
  project_.write("in", "1\n");
  run("cp in " + outside, {"in"}, {outside});
  const ReproductionPlan made = plan();
  ASSERT_THAT(made.obstacles, ::testing::SizeIs(1));
  EXPECT_TRUE(made.obstacles[0].outside);
  EXPECT_EQ(reproduce(made).exit_code(), base::ExitCode::kInconclusive);
  EXPECT_THAT(verdicts(reproduce(made, true)), ElementsAre("identical outside"));
}

TEST_F(Reproduce, StandardStreams) {
  project_.write("in", "b\na\n");
  const std::string log = (folder_.path() / "log").string();
  run("sort < in > out; echo shown > " + log, {"in"}, {"out", log});
  runs_[0].command = {"sort"};  // as the shell would have passed it to us
  runs_[0].redirects = {"0<" + at("in"), "1>" + at("out"), "2>" + log};
  const ReproductionPlan made = plan();
  EXPECT_THAT(made.obstacles, IsEmpty());
  EXPECT_THAT(made.notes, ElementsAre(HasSubstr("shown, not compared")));
  EXPECT_THAT(verdicts(reproduce(made)), ElementsAre("identical out"));
  EXPECT_EQ(testing::content_of(log), "shown\n");
}

TEST_F(Reproduce, TwoStreamsOfOneFile) {
  run("(echo 1; echo 2 >&2) > both 2>&1", {}, {"both"});
  runs_[0].command = {"sh", "-c", "echo 1; echo 2 >&2"};
  runs_[0].redirects = {"1>" + at("both"), "2>" + at("both")};
  EXPECT_THAT(verdicts(reproduce(plan())), ElementsAre("identical both"));
}

TEST(Redirects, Text) {
  for (const char* text : {"0</in", "1>/out", "2>>/a b"}) {
    const auto redirect = parse_redirect(text);
    ASSERT_TRUE(redirect) << text;
    EXPECT_EQ(to_text(*redirect), text);
  }
  for (const char* text : {"", "0", "3>/x", "1>x", "1>>", "x>/y", "1=/x"}) {
    EXPECT_FALSE(parse_redirect(text)) << text;
  }
}

// What the tool writes into its environment must not reach the project's: reproduce() compares.
TEST_F(Reproduce, AStageThatWritesIntoItsEnvironment) {
  project_.write(".venv/pyvenv.cfg", "");
  project_.write(".venv/bin/tool",
                 "#!/bin/sh\necho used >> \"$(dirname \"$0\")/../log\"; echo made\n");
  ASSERT_EQ(::chmod(at(".venv/bin/tool").c_str(), 0755), 0);
  run(".venv/bin/tool > out", {}, {"out"}).processes.push_back({.arguments = {".venv/bin/tool"}});
  const ReproductionPlan made = plan();
  ASSERT_EQ(made.environments.size(), 1U);
  std::filesystem::create_directory(folder_.path() / "copy");
  const StageIsolation here(made.root, folder_.path() / "copy", made.environments, true);
  if (here.protects()) {
    EXPECT_THAT(verdicts(reproduce(made)), ElementsAre("identical out"));
  } else {  // it is copied, and what is written into the copy shows
    EXPECT_THAT(verdicts(reproduce(made)), ElementsAre("identical out", "extra log"));
  }
  std::filesystem::remove_all(folder_.path() / "copy");
  said_.clear();
  EXPECT_THAT(verdicts(reproduce(made, false, false)), ElementsAre("identical out", "extra log"));
  EXPECT_THAT(said_, HasSubstr("/.venv is copied"));
  EXPECT_THAT(said_, HasSubstr("is not protected"));
  EXPECT_EQ(testing::content_of(folder_.path() / "copy/.venv/log"), "used\nused\n");
}

TEST_F(Reproduce, FailureStops) {
  project_.write("in", "1\n");
  run("cat in > one", {"in"}, {"one"});
  run("cat one > two", {"one"}, {"two"});
  runs_[0].command[2] = "cat in > one; exit 7";
  const Reproduction done = reproduce(plan());
  EXPECT_THAT(done.undecided, HasSubstr("now with 7"));
  EXPECT_EQ(done.exit_code(), base::ExitCode::kInconclusive);
  EXPECT_THAT(done.stages, ::testing::SizeIs(1));
  std::filesystem::remove_all(folder_.path() / "copy");
  runs_[0].command = {"no-such-program-anywhere"};
  EXPECT_THAT(reproduce(plan()).undecided, HasSubstr("now with 127"));
}

TEST_F(Reproduce, EnvironmentWithSecretsFromHere) {
  environment_["PLAIN"] = "p";
  environment_["MY_TOKEN"] = "s3cret";
  run("echo $PLAIN $MY_TOKEN > out", {}, {"out"});
  runs_[0].context.environment = {
      {"PATH", environment_["PATH"]}, {"PLAIN", "p"}, {"MY_TOKEN", "[redacted]"}};
  environment_["PLAIN"] = "another now";
  EXPECT_THAT(plan().notes, IsEmpty());
  EXPECT_THAT(verdicts(reproduce(plan())), ElementsAre("identical out"));
  environment_.erase("MY_TOKEN");
  EXPECT_THAT(plan().notes, ElementsAre(HasSubstr("MY_TOKEN")));
  runs_[0].command.emplace_back("--token=[redacted]");
  EXPECT_THAT(plan().obstacles, ::testing::SizeIs(1));
}

TEST_F(Reproduce, OnlyIntoAnEmptyFolder) {
  project_.write("in", "1\n");
  run("cp in out", {"in"}, {"out"});
  std::filesystem::create_directory(folder_.path() / "copy");
  std::ofstream(folder_.path() / "copy/x") << "x";
  const auto done = run_plan(plan(), {.directory = folder_.path() / "copy"});
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().line(), HasSubstr("is not empty"));
}

TEST_F(Reproduce, DifferencesOfTheEnvironment) {
  store::RunRecord run;
  run.context.machine = base::Json::parse(
      R"({"os":{"name":"Debian","version":"11","kernel":"5"},"cpu":{"model":"A"},)"
      R"("gpus":[{"name":"H200"},{"name":"H200"}],"drivers":{"nvidia":"580"}})");
  run.context.packages = {
      {"dpkg", "no-such-package", "1"}, {"pip", "no-such-dist", "2"}, {"conda", "x", "3"}};
  const base::Json here = base::Json::parse(
      R"({"os":{"name":"Debian","version":"12","kernel":"5"},"cpu":{"model":"A"},)"
      R"("gpus":[],"drivers":{"nvidia":null}})");
  std::vector<std::string> found;
  for (const EnvironmentDifference& one : environment_differences({run, run}, here)) {
    found.push_back(one.what + ": " + one.recorded + " / " + one.here);
  }
  EXPECT_THAT(found,
              ElementsAre("system: Debian 11 / Debian 12", "gpus: 2 x H200 / none",
                          "driver: 580 / unknown", "dpkg no-such-package: 1 / not installed",
                          "pip no-such-dist: 2 / not installed", "conda x: 3 / not installed"));
}

}  // namespace
}  // namespace assay::lineage
