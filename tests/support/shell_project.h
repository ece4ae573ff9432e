// A fixture for tests of the program as people use it: shell scripts in a temporary project,
// where $A is the program.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "base/json.h"
#include "base/testing/temp_dir.h"
#include "support/process.h"

namespace assay::support {

class ShellProject : public ::testing::Test {
 protected:
  void SetUp() override { shell("$A init -q"); }
  ProcessResult shell(const std::string& script) {
    return run({{"bash", "-c", "export A='" + program() + "'; " + script}, "", project_.path()});
  }
  base::Json json(const std::string& arguments) {
    return base::Json::parse(shell("$A " + arguments + " --json 2>/dev/null").out);
  }
  std::string content(const std::string& name) {
    std::ifstream file(project_.path() / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  base::testing::TempDir project_;
};

}  // namespace assay::support
