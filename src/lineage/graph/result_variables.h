// Environment variables that change what programs compute: seeds, paths that code is found by,
// numbers of threads, numerical modes, languages and time zones. The whole environment of a run is
// recorded; these are shown with it and compared by `status`. The list is in docs/run.md.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace assay::lineage {

bool changes_results(std::string_view variable);

using Variables = std::map<std::string, std::string>;
// Those of an environment that are on the list.
Variables result_variables(const Variables& environment);

// A variable whose value here is another than it was; empty: not set.
struct VariableDifference {
  std::string name, recorded, here;
};
// Redacted values are not compared.
std::vector<VariableDifference> result_variable_differences(const Variables& recorded,
                                                            const Variables& here);

}  // namespace assay::lineage
