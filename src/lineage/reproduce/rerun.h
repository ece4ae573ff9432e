// `assay run @N --set k=v`: the words of a recorded command with some values replaced. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace assay::lineage {

// Each of `sets` is "k=v" and replaces the value of k wherever the command gives it one: --k v,
// --k=v, -k v, -k=v and k=v; dashes and underscores in k are the same. A k that occurs several
// times is replaced every time, and of several values for one k the last counts. A k that has no
// value in the command is a usage error that names the ones that have.
base::Result<std::vector<std::string>> rerun_words(std::span<const std::string> words,
                                                   std::span<const std::string> sets);

}  // namespace assay::lineage
