// The documentation is true: every key is described, every example of the help texts runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "spec/schema.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string read(const fs::path& file) {
  std::ifstream stream(fs::path(ASSAY_SOURCE_DIR) / file);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

TEST(Docs, SpecsPageNamesEveryKeyWithItsMeaning) {
  const std::string page = read("docs/specs.md");
  for (const spec::KeyDoc& key : spec::all_keys()) {
    EXPECT_THAT(page, HasSubstr("`" + key.path + "`"));
    EXPECT_THAT(page, HasSubstr(key.meaning)) << key.path;
  }
}

// Lines of a text that start with "assay " after `indent`, as a person would type them.
std::vector<std::string> commands_in(const std::string& text, const std::string& indent) {
  std::vector<std::string> commands;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(indent + "assay ")) commands.push_back(line.substr(indent.size()));
  }
  return commands;
}

TEST(Docs, EveryExampleOfTheHelpTextsRuns) {
  support::TempDir directory;
  std::ofstream(directory.path() / "job.toml")
      << "[model]\nextends = \"llama3-8b\"\n[cluster]\nextends = \"h100-sxm-8\"\n";
  fs::create_directories(directory.path() / "path/to/project");
  const std::string path = "PATH=$(dirname " + std::string(ASSAY_PROGRAM) + "):$PATH; ";
  int ran = 0;
  for (const char* verb : {"presets", "presets list", "presets show", "presets check",
                           "presets keys", "init", "completion"}) {
    const auto help = support::run({{"bash", "-c", path + "assay " + verb + " --help"}});
    const std::string examples = help.out.substr(help.out.find("Examples:"));
    for (const std::string& command : commands_in(examples, "  ")) {
      const auto outcome = support::run({{"bash", "-c", path + command}, "", directory.path()});
      EXPECT_EQ(outcome.exit_code, 0) << command << ": " << outcome.err;
      ++ran;
    }
  }
  EXPECT_GE(ran, 12);
}

}  // namespace
}  // namespace assay
