// Copies of a file's contents that cost as little disk space as is safe.
#pragma once

#include <string>

#include "base/result.h"

namespace assay::lineage {

enum class Sharing {
  kShared,  // a reflink: both files have the same blocks until one of them is changed
  kCopied,
};

// Makes the empty file `to` a reflink of `from`, both open; false where the file system cannot.
bool share_contents(int from, int to);
// The same, or else a copy of its bytes. An error when the disk has less space than that takes;
// `where` names the copy.
base::Result<Sharing> copy_contents(int from, int to, const std::string& where);

}  // namespace assay::lineage
