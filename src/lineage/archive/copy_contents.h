// Copies of a file's contents that cost as little disk space as is safe.
#pragma once

#include <string>

#include "base/result.h"

namespace assay::lineage {

enum class Sharing {
  kShared,  // a reflink: both files have the same blocks until one of them is changed
  kCopied,
};

// Makes the empty file `to` a reflink of `from`; false where the file system does not support it.
bool share_contents(int from, int to);
// The same, or else copies the bytes. An error when the disk has too little space; `where` names
// the copy.
base::Result<Sharing> copy_contents(int from, int to, const std::string& where);

}  // namespace assay::lineage
