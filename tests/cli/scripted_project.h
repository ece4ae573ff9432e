// A project in a temporary folder, in which scripts run the program itself.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/json.h"
#include "base/testing/temp_dir.h"
#include "support/process.h"

namespace assay {

class ScriptedProject : public ::testing::Test {
 protected:
  // $ASSAY is the program.
  support::ProcessResult shell(const std::string& script) {
    return support::run(
        {{"sh", "-c", "ASSAY='" + support::program() + "'; " + script}, "", project_.path()});
  }
  // The script must succeed.
  support::ProcessResult done(const std::string& script) {
    support::ProcessResult outcome = shell(script);
    EXPECT_EQ(outcome.exit_code, 0) << script << "\n" << outcome.out << outcome.err;
    return outcome;
  }
  // The document that `$ASSAY ARGUMENTS --json` prints.
  base::Json json(const std::string& arguments) {
    const support::ProcessResult outcome = shell("$ASSAY " + arguments + " --json 2>/dev/null");
    EXPECT_TRUE(base::Json::accept(outcome.out)) << arguments << "\n" << outcome.out;
    return base::Json::parse(outcome.out, nullptr, false);
  }
  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((project_.path() / name).parent_path());
    std::ofstream(project_.path() / name) << text;
  }

  base::testing::TempDir project_;
};

}  // namespace assay
