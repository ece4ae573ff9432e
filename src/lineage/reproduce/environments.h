// The installed environments that a run used (venv, virtualenv, conda, node_modules). Their files
// are recorded as packages, not as inputs, so a copy of the project lacks them. An environment
// inside the project is either used in place, through a link in the copy and protected from writes
// (isolation.h), or made again by the stage that made it.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "lineage/reproduce/make_environment.h"
#include "store/run.h"

namespace assay::lineage {

// Folders whose bin/ has programs that the run started, by the paths it used: /p/.venv for
// /p/.venv/bin/python, whatever that links to. Virtual environments come first, in the order in
// which they were found, then the installations that they are based on. The folders may not exist.
std::vector<std::string> prefixes_of(const store::RunRecord& run);

// Whether the folder is the top of a virtual or conda environment, or a tree of npm packages.
bool is_environment(const std::string& folder);

// The environments below `root` that the plan's runs need.
struct NeededEnvironments {
  std::set<std::string> in_place;           // exist, and no run of the plan makes or changes them
  std::set<std::string> remade;             // a run of the plan makes them again
  std::vector<MissingEnvironment> missing;  // gone, and no run of the plan makes them
  std::vector<std::string> obstacles;
  std::vector<std::string> notes;
};
NeededEnvironments needed_environments(const std::vector<store::RunRecord>& runs,
                                       const std::string& root);

}  // namespace assay::lineage
