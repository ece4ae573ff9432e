// Copies of a file's contents that cost as little disk space as is safe.
#pragma once

#include <sys/stat.h>

#include <string>

#include "base/result.h"

namespace assay::lineage {

enum class Sharing {
  kShared,  // a reflink: both files have the same blocks until one of them is changed
  kLinked,  // a hard link
  kCopied,
};

// Makes the empty file `to` a reflink of `from`, both open; false where the file system cannot.
bool share_contents(int from, int to);
// The same, or else a copy of its bytes. An error when the disk has less space than that takes;
// `where` names the copy.
base::Result<Sharing> copy_contents(int from, int to, const std::string& where);

// Whether a second name for this file can stand for its content: nobody who respects permissions
// can write to it. They do not stop root.
bool may_be_linked(const struct stat& status, uid_t user);

}  // namespace assay::lineage
