// Fixture of the tests of `assay compare`: runs it in a temporary folder.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/testing/temp_dir.h"
#include "support/process.h"

namespace assay {

class CompareCli : public ::testing::Test {
 protected:
  // Results go to a new folder unless the test names one.
  support::ProcessResult compare(std::vector<std::string> arguments) {
    const auto given = [&](const char* option) {
      return std::find(arguments.begin(), arguments.end(), option) != arguments.end();
    };
    if (!given("-o") && !given("--resume")) {
      arguments.insert(arguments.begin(), {"-o", "kept-" + std::to_string(++kept_)});
    }
    arguments.insert(arguments.begin(), {support::program(), "compare"});
    return support::run({arguments, "", directory_.path()});
  }
  // The experiment is kept in x/.
  base::Json compare_json(std::vector<std::string> arguments, int exit_code) {
    arguments.insert(arguments.begin(), {"--json", "-o", "x"});
    const auto outcome = compare(arguments);
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    return base::Json::parse(outcome.out);
  }
  void refused(const std::vector<std::string>& arguments, const std::string& line) {
    const auto outcome = compare(arguments);
    EXPECT_EQ(outcome.exit_code, 64) << outcome.out;
    EXPECT_THAT(outcome.out, ::testing::IsEmpty());
    EXPECT_EQ(outcome.err, "assay: " + line + "\n");
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(directory_.path() / name) << text;
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(directory_.path() / name).rdbuf();
    return text.str();
  }
  [[nodiscard]] int runs_in(const std::string& name) const {
    std::istringstream lines(read(name));
    int runs = 0;
    for (std::string line; std::getline(lines, line);)
      runs += line.starts_with("{\"run\":") ? 1 : 0;
    return runs;
  }
  base::testing::TempDir directory_;
  int kept_ = 0;

  // Commands that print how long they took, so that nothing depends on the machine.
  static constexpr const char* kA = "echo took 100 s";
  static constexpr const char* kB = "echo took 102 s";
  static constexpr const char* kTook = "regex:took ([0-9.]+)";
};

}  // namespace assay
