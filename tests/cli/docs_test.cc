// The documentation is true: every key is described, every example of the help texts runs.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "base/testing/temp_dir.h"
#include "cli/recorded_project.h"
#include "cli/verbs.h"
#include "spec/schema.h"
#include "support/process.h"
#include "train/checkpoint/testing/snapshots.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string read(const fs::path& file) {
  std::ifstream stream(fs::path(ASSAY_SOURCE_DIR) / file);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

TEST(Docs, SpecsPageHasTheRowOfEveryKeyAndNoOther) {
  const std::string page = read("docs/specs.md");
  const auto keys = spec::all_keys();
  for (const spec::KeyDoc& key : keys) {
    std::string expected = key.expected;  // a bar inside a Markdown table is escaped
    for (std::size_t at = 0; (at = expected.find('|', at)) != std::string::npos; at += 2) {
      expected.insert(at, "\\");
    }
    EXPECT_THAT(page, HasSubstr("\n| `" + key.path + "` | " + expected + " | " + key.fallback +
                                " | " + key.meaning + " |\n"));
  }
  std::size_t rows = 0;
  for (std::size_t at = 0; (at = page.find("\n| `", at)) != std::string::npos; ++at) ++rows;
  EXPECT_EQ(rows, keys.size());
}

// The indented lines under "Examples:".
std::vector<std::string> examples_of(const std::string& help) {
  std::vector<std::string> commands;
  std::istringstream lines(help.substr(help.find("Examples:\n")));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  ")) commands.push_back(line.substr(2));
  }
  return commands;
}

// checkpoints/ as the examples know it, always the same.
void make_checkpoints(const fs::path& directory) {
  timespec written{.tv_sec = 1'794'700'000, .tv_nsec = 0};
  ASSERT_TRUE(checkpoint::prepare_root(directory / "checkpoints"));
  for (const std::int64_t step : {1000, 2000}) {
    const auto snapshot = checkpoint::testing::snapshot_of_step(step, 4096);
    const auto made = checkpoint::write_checkpoint(directory / "checkpoints", snapshot, {});
    ASSERT_TRUE(made);
    const std::array<timespec, 2> times = {written, written};
    ::utimensat(AT_FDCWD, (made->folder / "manifest.json").c_str(), times.data(), 0);
    written.tv_sec += 3600;
  }
}

// `assay limit` needs a run that is running: one named sweep, in a separate project.
std::string with_running_run(const std::string& command) {
  return "mkdir -p limited && cd limited && assay init -q && rm -f started;"
         " ASSAY_GPU=1 assay run -q --name sweep -- sh -c 'touch started; exec sleep 60' & run=$!;"
         " for i in $(seq 3000); do [ -e started ] && break; sleep 0.01; done; " +
         command + "; code=$?; kill $run; wait $run; exit $code";
}

TEST(Docs, EveryExampleOfTheHelpTextsRuns) {
  RecordedProject directory;
  // Twice the same, so that nothing differs, then what the examples name.
  for (int i = 0; i < 2; ++i) directory.record("prepare raw.txt=r -> train.bin=t");
  directory.record("train train.bin=t -> model.bin=m");
  directory.record("eval model.bin=m -> scores.json=s");
  std::ofstream(directory.path() / "job.toml")
      << "[model]\nextends = \"llama3-8b\"\n[cluster]\nextends = \"h100-sxm-8\"\n";
  for (const char* name : {"a.txt", "b.txt"}) std::ofstream(directory.path() / name) << "text";
  fs::copy_file(fs::path(ASSAY_SOURCE_DIR) / "tests/tokenizers/gpt2.json",
                directory.path() / "tokenizer.json");
  fs::create_directories(directory.path() / "path/to/project");
  fs::create_directories(directory.path() / "texts");
  std::ofstream(directory.path() / "texts/a.txt") << "text";
  std::ofstream(directory.path() / "pages.jsonl") << "{\"text\": \"a page\"}\n";
  make_checkpoints(directory.path());
  const std::string path = "export TMPDIR=$PWD; PATH=$(dirname " + support::program() + "):$PATH; ";
  int ran = 0;
  for (const std::string& verb : all_verbs()) {
    const auto help = support::run({{"bash", "-c", path + "assay " + verb + " --help"}});
    for (const std::string& command : examples_of(help.out)) {
      const char* shell = command.find("zsh") == std::string::npos ? "bash" : "zsh";
      const std::string script = verb == "limit" ? with_running_run(command) : command;
      const auto outcome = support::run({{shell, "-c", path + script}, "", directory.path()});
      EXPECT_EQ(outcome.exit_code, 0) << command << ": " << outcome.out << outcome.err;
      ++ran;
    }
  }
  EXPECT_GE(ran, 12);
}

// Every relative link of the project's pages leads somewhere.
TEST(Docs, LinksResolve) {
  const fs::path root = ASSAY_SOURCE_DIR;
  std::vector<fs::path> pages = {"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"};
  for (const auto& entry : fs::directory_iterator(root / "docs")) {
    pages.push_back(fs::path("docs") / entry.path().filename());
  }
  for (const fs::path& page : pages) {
    const std::string text = read(page);
    for (std::size_t at = 0; (at = text.find("](", at)) != std::string::npos;) {
      at += 2;
      const std::string link = text.substr(at, text.find(')', at) - at);
      const std::string target = link.substr(0, link.find('#'));
      if (target.empty() || target.find("://") != std::string::npos) continue;
      EXPECT_TRUE(fs::exists(root / page.parent_path() / target)) << page << ": " << link;
    }
  }
}

// What stands between "```NAME" and "```" in a Markdown page.
std::vector<std::string> blocks(const std::string& page, const std::string& name) {
  std::vector<std::string> found;
  const std::string open = "\n```" + name + "\n";
  for (std::size_t at = 0; (at = page.find(open, at)) != std::string::npos;) {
    at += open.size();
    found.push_back(page.substr(at, page.find("\n```", at) + 1 - at));
  }
  return found;
}

// True when `shown` is `actual`; a line "…" in it stands for any lines.
bool matches(const std::string& shown, const std::string& actual) {
  std::size_t at = 0;
  bool gap = false;
  std::istringstream lines(shown);
  for (std::string line; std::getline(lines, line);) {
    if (line == "…") {
      gap = true;
      continue;
    }
    const std::size_t found = actual.find(line + "\n", at);
    if (found == std::string::npos || (!gap && found != at)) return false;
    at = found + line.size() + 1;
    gap = false;
  }
  return gap || at == actual.size();
}

// What a command prints; `assay run` in a terminal, where it ends with a line about the run.
std::string printed_by(const std::string& command, const fs::path& directory) {
  const std::string path = "export TMPDIR=$PWD; PATH=$(dirname " + support::program() + "):$PATH; ";
  if (!command.starts_with("assay run")) {
    return support::run({{"bash", "-c", path + command + " 2>&1"}, "", directory}).out;
  }
  std::string out =
      support::run(
          {{"bash", "-c", path + "script -qec '" + command + "' /dev/null"}, "", directory})
          .out;
  std::erase(out, '\r');
  return out;
}

// Without what differs between machines and runs: durations, sizes of packs, and the widths of the
// columns that have them.
std::string settled(std::string text) {
  text = std::regex_replace(text, std::regex("[0-9.]+ (s|ms|us)\\b"), "TIME");
  text = std::regex_replace(text, std::regex("(\\.tar\\.zst): [0-9.]+ KiB"), "$1: SIZE");
  return std::regex_replace(text, std::regex("  +|(?:─)+"), " ");
}

// Pages whose commands follow those of README.md: two runs of docs/example.
void record_example(const fs::path& directory) {
  for (const char* command :
       {"seq 1000 > raw.csv", "assay run -q -- python3 prepare.py raw.csv clean.csv",
        "assay run -q -- python3 train.py --data clean.csv --out model.pt"}) {
    const std::string path = "PATH=$(dirname " + support::program() + "):$PATH; ";
    ASSERT_EQ(support::run({{"bash", "-c", path + command}, "", directory}).exit_code, 0);
  }
}

class ConsoleBlocks : public ::testing::TestWithParam<const char*> {};

// Pages show commands with their real output: "$ command", then what it prints.
TEST_P(ConsoleBlocks, ShowWhatTheProgramPrints) {
  const std::string page = read(GetParam());
  const bool follows =
      std::set<std::string>{"docs/archive.md", "docs/pack.md", "docs/refresh.md"}.contains(
          GetParam());
  base::testing::TempDir directory;
  make_checkpoints(directory.path());
  fs::copy(fs::path(ASSAY_SOURCE_DIR) / "docs/example", directory.path());
  if (follows) record_example(directory.path());
  for (const std::string& file : blocks(page, "toml")) {
    if (file.starts_with("# job.toml\n")) std::ofstream(directory.path() / "job.toml") << file;
  }
  int ran = 0;
  for (const std::string& block : blocks(page, "console")) {
    for (std::size_t at = block.find("$ "); at != std::string::npos;) {
      const std::size_t end_of_line = block.find('\n', at);
      const std::size_t next = block.find("\n$ ", end_of_line - 1);
      const std::string command = block.substr(at + 2, end_of_line - at - 2);
      const std::size_t stop = next == std::string::npos ? block.size() : next + 1;
      const std::string shown = block.substr(end_of_line + 1, stop - end_of_line - 1);
      const std::string actual = printed_by(command, directory.path());
      EXPECT_TRUE(follows ? matches(settled(shown), settled(actual)) : matches(shown, actual))
          << command << "\nprints\n"
          << actual << "\nand the page shows\n"
          << shown;
      ++ran;
      at = next == std::string::npos ? next : next + 1;
    }
  }
  EXPECT_GT(ran, 0);
}

INSTANTIATE_TEST_SUITE_P(Pages, ConsoleBlocks,
                         ::testing::Values("README.md", "docs/specs.md", "docs/data.md",
                                           "docs/bench.md", "docs/checkpoint.md", "docs/compare.md",
                                           "docs/plan.md", "docs/report.md", "docs/archive.md",
                                           "docs/pack.md", "docs/refresh.md"),
                         [](const auto& page) { return fs::path(page.param).stem().string(); });

}  // namespace
}  // namespace assay
