// What an experiment found, as tables for people and as JSON for programs.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "cli/verb.h"
#include "compare/findings.h"
#include "compare/stopping.h"

namespace assay::cli {

struct Compared {
  const compare::Measured& measured;
  compare::Findings findings;
  compare::Stop stop = compare::Stop::kNo;
  std::vector<std::string> preflight;
  std::string directory;
  std::string failure = {};  // the line, where an arm failed
};

void print_compared(const Session& session, const Compared& compared);
// compare_json.cc
base::Json compared_json(const Compared& compared);

// "+1.02 %"
std::string percent_text(double percent);

}  // namespace assay::cli
