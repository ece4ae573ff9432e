// Environment variables that change what programs compute: seeds, search paths for code, numbers of
// threads, numerical modes, locale and time zone. The whole environment of a run is recorded; these
// are shown with it and compared by `status`. The list is in docs/run.md.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace assay::lineage {

bool changes_results(std::string_view variable);

using Variables = std::map<std::string, std::string>;
// The variables of an environment that are on the list.
Variables result_variables(const Variables& environment);

// A variable whose value differs from the recorded one; empty: not set.
struct VariableDifference {
  std::string name, recorded, here;
};
// Redacted values are not compared.
std::vector<VariableDifference> result_variable_differences(const Variables& recorded,
                                                            const Variables& here);

}  // namespace assay::lineage
