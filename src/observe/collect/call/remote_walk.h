// RemoteView's slow way: a path walked one component after the other inside the thread's own root,
// with the thread's /proc/self. Needed after chroot and in other mount namespaces, for /dev/stdin
// and /proc/self/fd/N, for deleted directories and for paths that are longer than one call takes.
#pragma once

#include <string_view>

#include "observe/collect/call/remote_path.h"

namespace assay::collect {

// `base` is a descriptor of the collector, where a relative path begins.
RemoteFile walk_remote_path(const RemoteView& view, int base, std::string_view path, bool follow);

}  // namespace assay::collect
