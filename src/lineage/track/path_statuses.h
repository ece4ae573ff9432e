// The statuses of many paths at once. At the end of a run every input and output is compared with
// what is on disk, and the user waits.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "lineage/track/stamp.h"

namespace assay::lineage {

// Where to look: a folder, as in FolderHandle, and a name in it. Without a folder, nowhere.
struct PlaceOfFile {
  const std::string* folder = nullptr;
  const char* name = nullptr;
};

// Element i is what is at place_of(i), as status_at() has it. Uses several threads if there are
// many, so `place_of` must only read.
std::vector<PathStatus> statuses_of(std::size_t count,
                                    const std::function<PlaceOfFile(std::size_t i)>& place_of);

}  // namespace assay::lineage
