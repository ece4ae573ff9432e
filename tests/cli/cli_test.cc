// The program from the command line: what it prints, where, and how it exits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "base/json.h"
#include "base/testing/temp_dir.h"
#include "cli/verbs.h"
#include "support/process.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using base::Json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

support::ProcessResult assay(std::vector<std::string> arguments, const fs::path& directory = {},
                             const std::string& input = {}) {
  arguments.insert(arguments.begin(), support::program());
  return support::run({arguments, input, directory});
}

// A usage error: exit 64, nothing on stdout, exactly one line on stderr.
void expect_usage_error(const support::ProcessResult& outcome, const std::string& line) {
  EXPECT_EQ(outcome.exit_code, 64);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_EQ(outcome.err, "assay: " + line + "\n");
}

TEST(Cli, VersionNamesCommitAndFlags) {
  const auto text = assay({"--version"});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.out, ::testing::ContainsRegex("assay [0-9.]+ \\(commit [0-9a-z-]+\\)"));
  EXPECT_THAT(text.out, HasSubstr("-O"));
  const Json json = Json::parse(assay({"--version", "--json"}).out);
  for (const char* key : {"release", "commit", "compiler", "build_type", "flags", "sanitizers"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
}

// Tests do less when the program is slow; a build tree compiles both with the same sanitizers.
TEST(Cli, TestsKnowASanitizedProgram) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  EXPECT_TRUE(support::program_is_sanitized());
#else
  EXPECT_FALSE(support::program_is_sanitized());
#endif
}

TEST(Cli, LinksNoCudaAndNoMpi) {
  const auto libraries = support::run({{"ldd", support::program()}});
  ASSERT_EQ(libraries.exit_code, 0);
  for (const char* name : {"cuda", "cublas", "nvidia", "nccl", "mpi", "python"}) {
    EXPECT_THAT(libraries.out, ::testing::Not(HasSubstr(name)));
  }
}

TEST(Cli, WithoutAVerbItHelps) {
  const auto outcome = assay({});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("presets"));
}

TEST(Cli, EveryVerbHelpsWithAnExample) {
  const std::vector<std::string> verbs = all_verbs();
  EXPECT_THAT(verbs, ::testing::IsSupersetOf({"presets", "presets show", "init", "completion"}));
  for (const std::string& verb : verbs) {
    const auto outcome =
        support::run({{"bash", "-c", support::program() + " " + verb + " --help"}});
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_THAT(outcome.out, HasSubstr("Examples:\n"));
    EXPECT_THAT(outcome.out, HasSubstr("--json"));
    EXPECT_THAT(outcome.out, HasSubstr("Usage: assay " + verb + " "));
  }
}

TEST(Cli, MistakesAreOneLineWithTheNearestName) {
  expect_usage_error(assay({"preset"}), "unknown command 'preset'; did you mean 'presets'?");
  expect_usage_error(assay({"presets", "sho", "x"}),
                     "presets: unknown command 'sho'; did you mean 'show'?");
  expect_usage_error(assay({"presets", "list", "--jsn"}),
                     "presets list: unexpected argument '--jsn'; did you mean '--json'?");
  expect_usage_error(assay({"presets", "show"}),
                     "presets show: NAME is required; see `assay presets show --help`");
  expect_usage_error(assay({"presets", "show", "tiny", "tiny"}),
                     "presets show: unexpected argument 'tiny'; see `assay presets show --help`");
  expect_usage_error(assay({"presets", "list", "modles"}),
                     "presets list: unknown kind 'modles'; did you mean 'models'?");
  expect_usage_error(assay({"completion", "fish"}),
                     "completion: unknown shell 'fish'; expected one of: bash, zsh");
}

TEST(Cli, HostileArgumentsDoNotReachTheTerminal) {
  const auto outcome = assay({"presets", "show", "\x1b[31mred\nsecond line\xff"});
  EXPECT_EQ(outcome.exit_code, 64);
  EXPECT_THAT(outcome.err, ::testing::Not(HasSubstr("\x1b")));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
}

TEST(Cli, HostileFilesDoNotReachTheTerminalEither) {
  base::testing::TempDir directory;
  const std::string name = "\x1b[31m\nname.toml";
  std::ofstream(directory.path() / name)
      << "description = \"\\u001b[31mred\\nline\"\n[model]\nextends = \"tiny\"\n";
  for (const char* verb : {"show", "check"}) {
    const auto outcome = assay({"presets", verb, "./" + name}, directory.path());
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, ::testing::Not(HasSubstr("\x1b")));
  }
}

TEST(Cli, NothingIsDroppedSilently) {
  expect_usage_error(assay({"--", "foo"}), "unknown command 'foo'; see `assay --help`");
  EXPECT_EQ(assay({"--", "presets", "list"}).exit_code, 64);
}

TEST(Cli, ChecksAnswerInJsonEitherWay) {
  const auto wrong = assay({"presets", "check", "--json", "-"}, {}, "[model]\nlayerz = 4\n");
  EXPECT_EQ(wrong.exit_code, 64);
  const Json json = Json::parse(wrong.out);
  EXPECT_EQ(json["ok"], false);
  EXPECT_EQ(json["error"]["where"], "standard input:2");
  EXPECT_EQ(Json::parse(assay({"presets", "check", "--json", "demo"}).out)["ok"], true);
}

TEST(Cli, AJobOnACpuNeedsNoPrecision) {
  const auto outcome = assay({"presets", "check", "-"}, {},
                             "[model]\nextends = \"tiny\"\n[batch]\nmicro_batch = 2\n"
                             "[cluster]\ndevices_per_node = 1\n"
                             "[cluster.device]\nkind = \"cpu\"\nname = \"any\"\n");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

TEST(Cli, LlamaHasItsExactCountInJson) {
  const auto outcome = assay({"presets", "show", "llama3-8b", "--json"});
  ASSERT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("\"parameters\": 8030261248"));
  const Json json = Json::parse(outcome.out);
  std::int64_t sum = 0;
  for (const Json& group : json["groups"]) {
    std::int64_t elements = group["tensors"].get<std::int64_t>();
    for (const Json& extent : group["shape"]) elements *= extent.get<std::int64_t>();
    EXPECT_EQ(group["parameters"], elements) << group["name"];
    sum += elements;
  }
  EXPECT_EQ(sum, 8'030'261'248);
}

TEST(Cli, ListsAreTheSameFactsAsJson) {
  const auto text = assay({"presets", "list"});
  const Json json = Json::parse(assay({"presets", "list", "--json"}).out);
  ASSERT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.err, IsEmpty());
  for (const char* kind : {"models", "jobs", "clusters", "devices", "layouts"}) {
    ASSERT_FALSE(json[kind].empty()) << kind;
    for (const Json& preset : json[kind]) {
      EXPECT_THAT(text.out, HasSubstr(preset["name"].get<std::string>()));
    }
  }
  for (const Json& provider : json["prices"]) {
    for (const Json& price : provider["prices"]) {
      EXPECT_FALSE(price["date"].get<std::string>().empty());
      EXPECT_FALSE(price["source"].get<std::string>().empty());
    }
  }
}

TEST(Cli, QuietPrintsNothingButJson) {
  EXPECT_THAT(assay({"presets", "list", "--quiet"}).out, IsEmpty());
  EXPECT_THAT(assay({"presets", "list", "--quiet"}).err, IsEmpty());
  EXPECT_FALSE(assay({"presets", "list", "--quiet", "--json"}).out.empty());
}

TEST(Cli, OverridesReachTheSpec) {
  const auto outcome = assay({"presets", "show", "llama3-8b", "--set", "model.layers=4", "--json"});
  EXPECT_EQ(Json::parse(outcome.out)["model"]["layers"], 4);
}

TEST(Cli, ChecksAFileAndStandardInput) {
  base::testing::TempDir directory;
  std::ofstream(directory.path() / "job.toml") << "[model]\nextends = \"tiny\"\n";
  const auto good = assay({"presets", "check", "job.toml"}, directory.path());
  EXPECT_EQ(good.exit_code, 0);
  EXPECT_THAT(good.out, StartsWith("job.toml: a valid model: 853,120 parameters"));
  expect_usage_error(assay({"presets", "check", "-"}, {}, "[model]\nlayerz = 4\n"),
                     "standard input:2: model.layerz: unknown key; did you mean 'layers'?");
  const auto broken = assay({"presets", "check", "-"}, {}, "[model]\na = = b\n");
  EXPECT_EQ(broken.exit_code, 64);
  EXPECT_THAT(broken.err, StartsWith("assay: standard input:2: not valid TOML: "));
}

TEST(Cli, FilesThatAreNoSpecs) {
  base::testing::TempDir directory;
  for (const std::string& path :
       {std::string("./missing.toml"), directory.path().string() + "/", std::string("/dev/zero")}) {
    const auto outcome = assay({"presets", "check", path});
    EXPECT_EQ(outcome.exit_code, 64) << path;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
  std::ofstream(directory.path() / "big.toml") << std::string(2 << 20, '#');
  EXPECT_EQ(assay({"presets", "check", "./big.toml"}, directory.path()).exit_code, 64);
  ASSERT_EQ(::mkfifo((directory.path() / "pipe.toml").c_str(), 0600), 0);
  EXPECT_EQ(assay({"presets", "check", "./pipe.toml"}, directory.path()).exit_code, 64);
}

TEST(Cli, InitMakesAStoreOnceAndReportsIt) {
  base::testing::TempDir directory;
  const auto first = assay({"init"}, directory.path());
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.out, StartsWith("created "));
  const auto second = assay({"init", "--json"}, directory.path());
  const Json json = Json::parse(second.out);
  EXPECT_EQ(json["created"], false);
  EXPECT_THAT(first.out, HasSubstr(json["project"].get<std::string>()));
  // The store has the same, read by another program.
  const auto row = support::run({{"sqlite3", (directory.path() / ".assay/assay.db").string(),
                                  "SELECT created_at || '|' || created_by FROM project"}});
  EXPECT_EQ(row.out, json["created_at"].get<std::string>() + "|" +
                         json["created_by"].get<std::string>() + "\n");
  struct stat status {};
  ASSERT_EQ(::stat((directory.path() / ".assay/assay.db").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST(Cli, InitRefusesANewerStore) {
  base::testing::TempDir directory;
  ASSERT_EQ(assay({"init"}, directory.path()).exit_code, 0);
  const std::string database = (directory.path() / ".assay/assay.db").string();
  ASSERT_EQ(support::run({{"sqlite3", database, "PRAGMA user_version = 999"}}).exit_code, 0);
  const auto outcome = assay({"init"}, directory.path());
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("999"));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
}

TEST(Cli, InitOfNoDirectoryIsAUsageError) {
  expect_usage_error(assay({"init", "./nowhere"}),
                     "init: './nowhere' is not a directory; create it first");
  expect_usage_error(assay({"init", ""}), "init: '' is not a directory; create it first");
}

TEST(Cli, InitInADeletedDirectoryIsUnfit) {
  const auto outcome = support::run(
      {{"bash", "-c", "d=$(mktemp -d); cd $d; rmdir $d; " + support::program() + " init"}});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.err, "assay: the working directory: is gone; change to another\n");
}

TEST(Cli, InitInsideAProjectWarns) {
  base::testing::TempDir directory;
  fs::create_directories(directory.path() / "inner");
  ASSERT_EQ(assay({"init"}, directory.path()).exit_code, 0);
  const auto outcome = assay({"init", "inner"}, directory.path());
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, StartsWith("created "));
  EXPECT_THAT(outcome.err, HasSubstr("a project inside a project"));
  EXPECT_THAT(assay({"init", "inner", "--quiet"}, directory.path()).err, IsEmpty());
}

TEST(Cli, InitIsNotStoppedByWhatStandsAbove) {
  base::testing::TempDir directory;
  std::ofstream(directory.path() / ".assay") << "somebody's file\n";
  fs::create_directories(directory.path() / "mine");
  EXPECT_THAT(assay({"init", "mine"}, directory.path()).out, StartsWith("created "));
}

TEST(Cli, OnlyInitFinishesAnEmptyDatabase) {
  base::testing::TempDir directory;
  fs::create_directories(directory.path() / ".assay");
  std::ofstream(directory.path() / ".assay/assay.db");
  for (const std::vector<std::string>& verb :
       {std::vector<std::string>{"log"}, {"top", "--once", "--interval", "0.1"}}) {
    const auto refused = assay(verb, directory.path());
    EXPECT_EQ(refused.exit_code, 3) << verb.front();
    EXPECT_THAT(refused.err, HasSubstr("the store is empty")) << verb.front();
  }
  const auto run = assay({"run", "--", "true"}, directory.path());
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.err, HasSubstr("this run is not recorded: the store is empty"));
  EXPECT_THAT(assay({"init"}, directory.path()).out, StartsWith("created "));
}

TEST(Cli, FlagsWorkInAnyPosition) {
  const std::string json = assay({"presets", "show", "tiny", "--json"}).out;
  EXPECT_EQ(assay({"--json", "presets", "show", "tiny"}).out, json);
  EXPECT_EQ(assay({"presets", "--json", "show", "tiny"}).out, json);
  EXPECT_EQ(assay({"presets", "show", "--json", "--", "tiny"}).out, json);
  EXPECT_THAT(assay({"--quiet", "presets", "list"}).out, IsEmpty());
}

TEST(Cli, ClosedStreamsDoNotCrashIt) {
  const std::string program = support::program();
  const auto closed = [&](const std::string& command) {
    return support::run({{"bash", "-c", program + command}}).exit_code;
  };
  EXPECT_EQ(closed(" presets show nope 2>&-"), 64);
  EXPECT_EQ(closed(" presets show nope <&- >&- 2>&-"), 64);
  EXPECT_EQ(closed(" presets list >&-"), 3);
  EXPECT_EQ(closed(" presets check - <&-"), 64);
}

TEST(Cli, AFullDiskIsNotSuccess) {
  const auto outcome =
      support::run({{"sh", "-c", support::program() + " presets list > /dev/full"}});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("standard output: cannot write"));
  EXPECT_THAT(outcome.err, HasSubstr("No space left on device"));
  // One that would go on for ever ends.
  for (const char* where : {"/dev/full", "&-"}) {
    const auto endless = support::run(
        {{"sh", "-c",
          "timeout 20 " + support::program() + " top --json --interval 0.1 >" + where}});
    EXPECT_EQ(endless.exit_code, 3) << where;
    EXPECT_THAT(endless.err, HasSubstr("standard output: cannot write")) << where;
  }
}

// Standard output is the command's.
TEST(Cli, RunJsonIsOneLineOnStandardError) {
  base::testing::TempDir directory;
  const auto ran =
      assay({"run", "--json", "--", "sh", "-c", "echo text | tee made; exit 5"}, directory.path());
  EXPECT_EQ(ran.exit_code, 5);
  EXPECT_EQ(ran.out, "text\n");
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  const Json summary = Json::parse(ran.err, nullptr, false);
  ASSERT_TRUE(summary.is_object()) << ran.err;
  const Json shown = Json::parse(assay({"show", "last", "--json"}, directory.path()).out);
  for (const char* key : {"uid", "status", "exit_code", "signal", "complete", "tracer"}) {
    EXPECT_EQ(summary[key], shown["run"][key]) << key;
  }
  EXPECT_EQ(summary["run"], shown["run"]["id"]);
  EXPECT_EQ(summary["exit_code"], 5);
  EXPECT_EQ(summary["outputs"], 1);
  EXPECT_EQ(summary["inputs"], shown["inputs"].size());
  EXPECT_EQ(Json::parse(assay({"--json", "run", "--", "true"}, directory.path()).err)["exit_code"],
            0);
}

}  // namespace
}  // namespace assay
