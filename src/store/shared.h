// A store that the members of a group share. `.assay` is then group-writable and has the
// set-group-id bit, so that everything in it belongs to the group, and a default access control
// list, so that nobody's umask takes the group's permissions away. Others have none.
#pragma once

#include <sys/types.h>

#include <filesystem>

#include "base/result.h"
#include "store/location.h"

namespace assay::store {

// Makes the store, which exists, one of this group, of which this user must be a member. Checked
// with a file and a folder that are made and removed again. May be repeated, by any member: what is
// right already is left alone. Nothing is changed if something that is wrong is another user's.
base::Result<void> share(const Location& location, gid_t group);

// Whether the folder is a shared store's.
bool is_shared(const std::filesystem::path& directory);

// Whether this user may use the shared store in this folder: a member of its group, and the project
// is not in a folder that everybody can write to, where anybody of the group could have put it.
bool may_use_shared(const std::filesystem::path& directory);

}  // namespace assay::store
