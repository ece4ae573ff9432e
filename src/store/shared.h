// A store that the members of a group share. Its `.assay` is group-writable and has the
// set-group-id bit, so that new files belong to the group, and a default access control list, so
// that no member's umask removes the group's permissions. Users outside the group have no access.
#pragma once

#include <sys/types.h>

#include <filesystem>

#include "base/result.h"
#include "store/location.h"

namespace assay::store {

// Shares an existing store with this group, of which this user must be a member, and checks the
// result by creating and removing a file and a folder. Any member may repeat this: correct
// permissions are left alone. Nothing is changed if another user owns a file whose permissions are
// wrong.
base::Result<void> share(const Location& location, gid_t group);

// Whether this is the folder of a shared store.
bool is_shared(const std::filesystem::path& directory);

// Whether this user may use the shared store in this folder: the user is in its group, and the
// project is not in a world-writable folder, where any member of the group could have planted it.
bool may_use_shared(const std::filesystem::path& directory);

}  // namespace assay::store
