// What `assay run` recorded, and how it differs from what it should have.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "oracle/cases.h"

namespace assay::oracle {

// Names of the tracers that work here.
const std::vector<std::string>& tracers();

// `assay show last --json` after the end of the run (a daemon may outlive `assay run`); a failed
// test and nothing if it cannot be read.
base::Json finished_run(const std::filesystem::path& project);

struct Recorded {
  Lineage lineage;
  std::map<std::string, std::string> input_digests;
  std::map<std::string, std::string> output_digests;
  std::map<std::string, std::string> before_digests;  // of outputs that say what they held
  std::map<std::string, std::int64_t> sizes;          // of outputs
};
// The files inside the tree: the same filter as the model's.
Recorded recorded(const base::Json& shown, const std::filesystem::path& tree);

// Each is a failure of the test for every difference.
void expect_same_files(const Lineage& expected, const Lineage& got, bool lacks_are_forgiven);
void expect_digests(const Lineage& expected, const Recorded& got,
                    const std::filesystem::path& pristine, const std::filesystem::path& tree);
// What outputs say they held is what they held, and `grows` say so.
void expect_befores(const std::vector<std::string>& grows, const Recorded& got,
                    const std::filesystem::path& pristine);
// Returns whether the run is marked incomplete.
bool expect_verdict(const Case& which, const std::string& tracer, const base::Json& shown);

}  // namespace assay::oracle
