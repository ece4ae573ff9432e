// The verbs that query recorded runs, from the command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/json.h"
#include "cli/recorded_project.h"
#include "store/run_reader.h"
#include "store/testing/runs.h"
#include "support/process.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using base::Json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class LineageCli : public ::testing::Test {
 protected:
  support::ProcessResult assay(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), support::program());
    return support::run({arguments, "", project_.path()});
  }
  Json json(std::vector<std::string> arguments) {
    arguments.emplace_back("--json");
    const auto outcome = assay(arguments);
    EXPECT_EQ(outcome.err, "");
    return Json::parse(outcome.out);
  }
  void expect_error(std::vector<std::string> arguments, int code, const std::string& line) {
    const auto outcome = assay(std::move(arguments));
    EXPECT_EQ(outcome.exit_code, code);
    EXPECT_THAT(outcome.out, IsEmpty());
    EXPECT_EQ(outcome.err, "assay: " + line + "\n");
  }
  void record_pipeline() {
    project_.record("prepare raw.txt=raw -> train.bin=t1 valid.bin=v1");
    project_.record("train --lr 0.1 train.bin=t1 -> model.bin=m1");
    project_.record("eval model.bin=m1 valid.bin=v1 -> scores.json=s1");
  }
  std::string absolute(const std::string& name) { return (project_.path() / name).string(); }

  RecordedProject project_;
};

TEST_F(LineageCli, LogIsNewestFirstAndTheSameInJson) {
  record_pipeline();
  project_.record("train --lr 0.2 train.bin=t1 -> model.bin=m2");
  const auto text = assay({"log"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_LT(text.out.find("--lr 0.2"), text.out.find("eval"));
  EXPECT_THAT(text.out, AllOf(HasSubstr("2 (old)"), HasSubstr("next: assay show 4")));
  const Json runs = json({"log"})["runs"];
  ASSERT_EQ(runs.size(), 4U);
  EXPECT_EQ(runs[0]["command"], "train --lr 0.2");
  EXPECT_EQ(runs[2]["superseded"], true);
  EXPECT_EQ(json({"log", "-n", "1"})["runs"].size(), 1U);
  EXPECT_EQ(json({"log", "--all"})["runs"].size(), 4U);
  expect_error({"log", "-n", "x"}, 64,
               "log -n: 'x' is not a whole number of at least 1; use --all for all runs");
  expect_error({"log", "-n", "0"}, 64,
               "log -n: '0' is not a whole number of at least 1; use --all for all runs");
  expect_error({"log", "-n"}, 64, "log: --count needs a value; see `assay log --help`");
}

TEST_F(LineageCli, ShowHasTheKeysThatProgramsRelyOn) {
  store::RunRecord run = project_.describe("train --lr 0.1 in.bin=i1 -> model.bin=m1 -old");
  run.command.push_back("a b");
  run.inputs.push_back({absolute("unread"), std::nullopt, 7});
  run.outputs.push_back({absolute("zz"), store::testing::digest_of("m1"), 2,
                         store::OutputStatus::kRenamed, absolute("z")});
  run.processes = {{10, 1, {"train"}, "/bin/train", 0, 5, 0}, {11, 10, {}, "", 1, {}, {}}};
  run.missed = {{"io_uring", "process 10 used io_uring"}};
  run.complete = false;
  run.dropped = 2;
  run.status = store::RunStatus::kFailed;
  run.exit_code = 3;
  project_.record(run);
  const Json shown = json({"show", "last"});
  EXPECT_EQ(shown["run"]["id"], 1);
  EXPECT_EQ(shown["run"]["command"], "train --lr 0.1 'a b'");
  EXPECT_EQ(shown["run"]["arguments"], Json({"train", "--lr", "0.1", "a b"}));
  EXPECT_EQ(shown["run"]["exit_code"], 3);
  EXPECT_EQ(shown["run"]["status"], "failed");
  EXPECT_EQ(shown["run"]["tracer"], "preload");
  EXPECT_EQ(shown["run"]["complete"], false);
  EXPECT_EQ(shown["run"]["dropped"], 2);
  EXPECT_EQ(shown["run"]["duration_s"], 1.5);
  ASSERT_EQ(shown["inputs"].size(), 2U);
  EXPECT_EQ(shown["inputs"][0]["path"], absolute("in.bin"));
  EXPECT_EQ(shown["inputs"][0]["blake3"], store::testing::digest_of("i1").hex());
  EXPECT_EQ(shown["inputs"][0]["size"], 2);
  EXPECT_EQ(shown["inputs"][1]["blake3"], nullptr);
  ASSERT_EQ(shown["outputs"].size(), 3U);
  EXPECT_EQ(shown["outputs"][0]["status"], "created");
  EXPECT_EQ(shown["outputs"][1]["status"], "deleted");
  EXPECT_EQ(shown["outputs"][1]["blake3"], nullptr);
  EXPECT_EQ(shown["outputs"][2]["status"], "renamed");
  EXPECT_EQ(shown["outputs"][2]["from"], absolute("z"));
  EXPECT_EQ(shown["processes"], 2);
  EXPECT_EQ(shown["missed"],
            Json::parse(R"([{"what":"io_uring","text":"process 10 used io_uring"}])"));
  const auto text = assay({"show"});
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("train --lr 0.1 'a b'"), HasSubstr("failed: 3"),
                    HasSubstr("io_uring"), HasSubstr("model.bin"), HasSubstr("renamed from z")));
}

TEST_F(LineageCli, ShowExplainsWhyFilesAreThere) {
  store::RunRecord run = project_.describe("x -> a=1");
  run.rules = {{"project", true, "it is inside the project", 1, {absolute("a")}},
               {"system", false, "it belongs to the system", 2, {"/usr/lib/x", "/usr/lib/y"}}};
  project_.record(run);
  EXPECT_THAT(assay({"show"}).out, Not(HasSubstr("/usr/lib/x")));
  EXPECT_THAT(assay({"show", "--explain"}).out,
              AllOf(HasSubstr("kept 1 (project): it is inside the project\n  a\n"),
                    HasSubstr("left out 2 (system): it belongs to the system\n  /usr/lib/x\n")));
}

TEST_F(LineageCli, MissingRuns) {
  expect_error({"show"}, 64, "no run has been recorded yet; record one with: assay run -- COMMAND");
  record_pipeline();
  expect_error({"show", "9"}, 64, "no run 9; the newest is 3; see `assay log`");
  expect_error({"show", "abc"}, 64, "'abc': there is no such run; give at least 4 digits of a uid");
  expect_error({"show", "nothing"}, 64, "'nothing': there is no such run; see `assay log`");
  expect_error({"diff", "1"}, 64, "diff: AFTER is required; see `assay diff --help`");
  expect_error({"lineage", "nothing"}, 64,
               "'nothing': no recorded run has read or written this; see `assay log`");
}

TEST_F(LineageCli, HostileNamesDoNotReachTheTerminal) {
  store::RunRecord run = project_.describe("x -> a=1");
  run.command = {"\x1b[31mred\nline", "\xff"};
  run.name = "\x1b]0;title";
  run.outputs[0].path = absolute("\x1b[2J\n\xff");
  run.inputs.push_back({absolute("\x1b<&\">"), store::testing::digest_of("1"), 1});
  project_.record(run);
  for (const std::vector<std::string>& verb :
       std::vector<std::vector<std::string>>{{"log"},
                                             {"show"},
                                             {"dag"},
                                             {"dag", "--format", "dot"},
                                             {"dag", "--format", "svg"},
                                             {"status"},
                                             {"dag", "1"},
                                             {"lineage", store::testing::digest_of("1").hex()},
                                             {"log", "--json"},
                                             {"show", "--json"},
                                             {"dag", "--json"}}) {
    const auto outcome = assay(verb);
    EXPECT_THAT(outcome.out, Not(HasSubstr("\x1b"))) << verb[0];
    EXPECT_THAT(outcome.err, IsEmpty()) << verb[0];
  }
}

TEST_F(LineageCli, DagInEveryFormat) {
  record_pipeline();
  const auto text = assay({"dag"});
  EXPECT_THAT(text.out, AllOf(HasSubstr("@2  train --lr 0.1"), HasSubstr("train.bin  ← @1"),
                              HasSubstr("model.bin  → @3")));
  const Json graph = json({"dag"});
  EXPECT_EQ(graph["runs"].size(), 3U);
  EXPECT_EQ(graph["files"].size(), 5U);
  EXPECT_EQ(assay({"dag", "--format", "json"}).out, assay({"dag", "--json"}).out);
  EXPECT_THAT(assay({"dag", "--format", "dot"}).out, StartsWith("digraph"));
  const auto written = assay({"dag", "--format", "svg", "-o", "dag.svg"});
  EXPECT_EQ(written.exit_code, 0) << written.err;
  std::ifstream file(project_.path() / "dag.svg");
  const std::string svg((std::istreambuf_iterator<char>(file)), {});
  EXPECT_THAT(svg,
              AllOf(StartsWith("<svg "), HasSubstr("prefers-color-scheme: dark"),
                    HasSubstr("model.bin"), Not(HasSubstr("href")), Not(HasSubstr("<script"))));
  // An independent reader of XML.
  const auto parsed = support::run(
      {{"python3", "-c", "import sys, xml.dom.minidom as m; m.parse(sys.argv[1])", "dag.svg"},
       "",
       project_.path()});
  EXPECT_EQ(parsed.exit_code, 0) << parsed.err;
  expect_error({"dag", "--format", "svgg"}, 64, "dag: unknown format 'svgg'; did you mean 'svg'?");
  EXPECT_EQ(assay({"dag", "-o", "/nowhere/x"}).exit_code, 3);
  // By the extension, as the report does.
  const auto first_of = [&](const std::string& name) {
    const auto outcome = assay({"dag", "-o", name});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, name + ": 3 runs, 5 files\n");
    std::ifstream made(project_.path() / name);
    std::string line;
    std::getline(made, line);
    return line;
  };
  EXPECT_THAT(first_of("x.svg"), StartsWith("<svg "));
  EXPECT_THAT(first_of("x.dot"), StartsWith("digraph"));
  EXPECT_EQ(first_of("x.json"), "{");
  EXPECT_EQ(first_of("x.txt") + "\n", text.out.substr(0, text.out.find('\n') + 1));
  expect_error({"dag", "-o", "x.png"}, 64,
               "x.png: unknown format 'png'; use .svg, .dot, .json or .txt, or give --format");
}

// What is shown of training is what was asked for; what is recorded stays.
TEST_F(LineageCli, TrainingIsShownAsItWasAskedFor) {
  store::RunRecord run = project_.describe("x -> a=1");
  run.command = {"/opt/lib/assay/assay-train", "train", "demo", "--out", "a b"};
  project_.record(run);
  for (const std::vector<std::string>& verb : std::vector<std::vector<std::string>>{
           {"log"}, {"show"}, {"dag"}, {"status"}, {"lineage", "a"}}) {
    EXPECT_THAT(assay(verb).out,
                AllOf(HasSubstr("assay train demo --out 'a b'"), Not(HasSubstr("assay-train"))))
        << verb[0];
  }
  EXPECT_EQ(json({"show"})["run"]["command"], "/opt/lib/assay/assay-train train demo --out 'a b'");
  EXPECT_EQ(json({"show"})["run"]["arguments"][0], "/opt/lib/assay/assay-train");
}

TEST_F(LineageCli, ARunThatRunsIsNotCalledIncomplete) {
  const auto shown = assay({"run", "--", support::program(), "show"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, AllOf(HasSubstr("still running"), Not(HasSubstr("no, see missed"))));
}

TEST_F(LineageCli, DagOfOneThing) {
  record_pipeline();
  project_.record("other -> unrelated=u");
  EXPECT_EQ(json({"dag"})["runs"].size(), 4U);
  EXPECT_EQ(json({"dag", "2"})["runs"].size(), 3U);
  EXPECT_EQ(json({"dag", "train.bin"})["runs"].size(), 3U);
  EXPECT_EQ(json({"dag", "unrelated"})["runs"].size(), 1U);
}

TEST_F(LineageCli, LineageGoesUpAndDown) {
  record_pipeline();
  const auto text = assay({"lineage", "model.bin"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("← train --lr 0.1  (run 2)"), HasSubstr("raw.txt"),
                              HasSubstr("from outside"), HasSubstr("→ eval  (run 3)"),
                              HasSubstr("scores.json")));
  EXPECT_THAT(assay({"lineage", "model.bin", "--up"}).out, Not(HasSubstr("scores.json")));
  EXPECT_THAT(assay({"lineage", "model.bin", "--down"}).out, Not(HasSubstr("raw.txt")));
  EXPECT_THAT(assay({"lineage", "model.bin", "--up", "--depth", "1"}).out,
              AllOf(HasSubstr("train.bin"), Not(HasSubstr("raw.txt"))));
  const Json up = json({"lineage", store::testing::digest_of("m1").hex().substr(0, 12), "--up"});
  EXPECT_EQ(up["artifact"]["path"], absolute("model.bin"));
  EXPECT_EQ(up["upstream"]["runs"].size(), 2U);
  EXPECT_FALSE(up.contains("downstream"));
}

TEST_F(LineageCli, DiffListsDifferences) {
  record_pipeline();
  project_.record("prepare raw.txt=raw -> train.bin=t1 valid.bin=v1");
  EXPECT_EQ(assay({"diff", "1", "4"}).exit_code, 0);
  EXPECT_EQ(json({"diff", "1", "4"})["same"], true);
  store::RunRecord changed = project_.describe("prepare --new raw.txt=raw2 more=1 -> train.bin=t2");
  changed.context.packages = {{"pip", "torch", "2.9"}};
  changed.context.environment = {{"SEED", "1"}};
  changed.context.git = store::Git{.commit = "abc", .dirty = true, .diff = "x"};
  changed.exit_code = 1;
  changed.status = store::RunStatus::kFailed;
  project_.record(changed);
  const auto text = assay({"diff", "1", "last"});
  EXPECT_EQ(text.exit_code, 1);
  std::map<std::string, std::string> found;
  const Json differences = json({"diff", "1", "last"})["differences"];
  for (const Json& one : differences) {
    const auto cell = [](const Json& value) {
      return value.is_null() ? std::string("none") : value.get<std::string>();
    };
    found[one["section"].get<std::string>() + " " +
          fs::path(one["what"].get<std::string>()).filename().string()] =
        cell(one["before"]) + " -> " + cell(one["after"]);
  }
  EXPECT_EQ(found["command arguments"], "prepare -> prepare --new");
  EXPECT_EQ(found["outcome status"], "done -> failed");
  EXPECT_EQ(found["outcome exit code"], "0 -> 1");
  EXPECT_EQ(found["input more"], "none -> " + store::testing::digest_of("1").hex().substr(0, 16));
  EXPECT_TRUE(found.contains("input raw.txt"));
  EXPECT_TRUE(found.contains("output train.bin"));
  EXPECT_EQ(found["output valid.bin"],
            store::testing::digest_of("v1").hex().substr(0, 16) + " -> none");
  EXPECT_EQ(found["package torch (pip)"], "none -> 2.9");
  EXPECT_EQ(found["environment SEED"], "none -> 1");
  EXPECT_EQ(found["git commit"], "none -> abc");
  EXPECT_TRUE(found.contains("git uncommitted changes"));
}

TEST_F(LineageCli, StatusFollowsTheFilesOnDisk) {
  EXPECT_EQ(assay({"status"}).exit_code, 0);
  record_pipeline();
  EXPECT_EQ(assay({"status"}).exit_code, 0) << assay({"status"}).out;
  std::ofstream(project_.path() / "raw.txt") << "changed by hand";
  const auto text = assay({"status"});
  EXPECT_EQ(text.exit_code, 1);
  EXPECT_THAT(text.out, AllOf(HasSubstr("input raw.txt has changed"), HasSubstr("stage 1 is stale"),
                              HasSubstr("next: assay refresh")));
  const Json stages = json({"status"})["stages"];
  for (const Json& stage : stages) EXPECT_EQ(stage["stale"], true);
  std::ofstream(project_.path() / "raw.txt") << "raw";
  EXPECT_EQ(assay({"status"}).exit_code, 0);
  fs::remove(project_.path() / "scores.json");
  EXPECT_THAT(assay({"status"}).out, HasSubstr("scores.json is gone"));
}

TEST_F(LineageCli, LabelsWorkWhereverSomethingIsNamed) {
  record_pipeline();
  EXPECT_EQ(assay({"label", "2", "baseline", "best"}).out,
            "baseline names run 2: train --lr 0.1\nbest names run 2: train --lr 0.1\n\n"
            "next: assay show baseline\n");
  EXPECT_EQ(json({"show", "best"})["run"]["labels"], Json({"baseline", "best"}));
  EXPECT_THAT(assay({"label", "3", "best"}).out,
              HasSubstr("best names run 3: eval, no longer run 2: train"));
  EXPECT_EQ(assay({"label", "model.bin", "weights"}).exit_code, 0);
  EXPECT_EQ(json({"lineage", "weights"})["artifact"]["path"], absolute("model.bin"));
  EXPECT_EQ(json({"dag", "weights"})["runs"].size(), 3U);
  EXPECT_EQ(json({"label"})["labels"].size(), 3U);
  EXPECT_EQ(assay({"label", "--remove", "best", "weights"}).exit_code, 0);
  expect_error({"label", "--remove", "best"}, 64,
               "label: there is no label 'best'; `assay label` lists them");
  expect_error({"label", "2", "a/b"}, 64,
               "label 'a/b': cannot hold spaces, slashes or control characters;"
               " use a word such as baseline or best-run");
  expect_error({"label", "2"}, 64, "label: no label given; assay label 2 NAME");
}

TEST_F(LineageCli, PopForgetsTheNewestRunAndNotItsFiles) {
  record_pipeline();
  const auto outcome = assay({"pop"});
  EXPECT_THAT(outcome.out, HasSubstr("removed run 3 (done): eval"));
  EXPECT_TRUE(fs::exists(project_.path() / "scores.json"));
  EXPECT_EQ(json({"log"})["runs"].size(), 2U);
  assay({"pop"});
  assay({"pop"});
  expect_error({"pop"}, 64, "no run has been recorded yet; record one with: assay run -- COMMAND");
}

TEST_F(LineageCli, GcListsRunsAndRemovesThem) {
  record_pipeline();
  project_.record("eval model.bin=m1 valid.bin=v1 -> scores.json=s2");
  EXPECT_EQ(json({"gc", "--dry-run"})["runs"].size(), 1U);
  EXPECT_EQ(json({"gc", "--keep", "1"})["runs"].size(), 0U);
  EXPECT_EQ(json({"gc", "--older-than", "36500d"})["runs"].size(), 0U);
  EXPECT_THAT(assay({"gc"}).out, HasSubstr("removed 1 run with 3 files"));
  EXPECT_EQ(json({"log"})["runs"].size(), 3U);
  expect_error({"gc", "--older-than", "soon"}, 64,
               "gc: --older-than 'soon' is not an age; for example 30d or 12h");
}

TEST_F(LineageCli, WithoutAStoreEveryVerbReportsIt) {
  base::testing::TempDir empty;
  for (const std::vector<std::string>& verb :
       std::vector<std::vector<std::string>>{{"log"},
                                             {"show"},
                                             {"dag"},
                                             {"lineage", "x"},
                                             {"status"},
                                             {"diff", "1", "2"},
                                             {"label"},
                                             {"pop"},
                                             {"gc"}}) {
    std::vector<std::string> arguments = verb;
    arguments.insert(arguments.begin(), support::program());
    const auto outcome = support::run({arguments, "", empty.path()});
    EXPECT_EQ(outcome.exit_code, 3) << verb[0];
    EXPECT_THAT(outcome.err, HasSubstr("nothing is recorded here or above; cd to the project"))
        << verb[0];
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
    EXPECT_FALSE(fs::exists(empty.path() / ".assay"));
  }
}

TEST_F(LineageCli, AnUnreadableStoreIsOneLine) {
  base::testing::TempDir other;
  fs::create_directories(other.path() / ".assay");
  std::ofstream(other.path() / ".assay/assay.db") << std::string(5000, 'x');
  const auto outcome = support::run({{support::program(), "log"}, "", other.path()});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("file is not a database"));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
}

}  // namespace
}  // namespace assay
