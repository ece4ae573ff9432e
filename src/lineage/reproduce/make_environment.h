// Makes a virtual environment again that a run used, that is not here, and that no recorded run
// makes: with `python -m venv` and the versions of the packages that the run used. A pack carries
// these versions, not the packages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/run.h"

namespace assay::lineage {

struct MissingEnvironment {
  std::string folder;
  std::string python;                 // "3.11" if its version is known, else empty
  std::vector<std::string> packages;  // "numpy==2.1.0"
};

// Adds what the run used to what is known of its environment. Names and versions come from a store
// or a pack and become arguments of pip, so what is not one is left out.
void add_packages(const store::RunRecord& run, MissingEnvironment& environment);

// The folder must not exist; after an error it does not. Packages come from where pip is configured
// to find them (PIP_INDEX_URL, PIP_FIND_LINKS, …).
base::Result<void> make_environment(const MissingEnvironment& environment);

}  // namespace assay::lineage
