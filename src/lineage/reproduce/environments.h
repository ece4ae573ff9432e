// The installed environments that a run used (venv, virtualenv, conda, node_modules). Their files
// are recorded as packages, not as inputs, so a copy of the project does not have them: an
// environment inside the project is used in place, through a link in the copy and without being
// written to (isolation.h), or made again by the stage that made it.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "store/run.h"

namespace assay::lineage {

// Folders that have bin/ with programs that the run started, by the names under which it started
// them: /p/.venv for /p/.venv/bin/python, whatever that links to. Virtual environments first, in
// the order in which they were found; then the installations that they are based on. They may not
// exist.
std::vector<std::string> prefixes_of(const store::RunRecord& run);

// Whether the folder is the top of a virtual or conda environment, or a tree of npm packages.
bool is_environment(const std::string& folder);

// What the plan's runs need of environments below `root`.
struct NeededEnvironments {
  std::set<std::string> in_place;  // exist, and no run of the plan makes or changes them
  std::set<std::string> remade;    // by a run of the plan
  std::vector<std::string> obstacles;
  std::vector<std::string> notes;
};
NeededEnvironments needed_environments(const std::vector<store::RunRecord>& runs,
                                       const std::string& root);

}  // namespace assay::lineage
