#include <fcntl.h>
#include <sys/stat.h>

#include "oracle/file_model.h"

namespace assay::oracle {

namespace fs = std::filesystem;

Snapshot take_snapshot(const fs::path& root) {
  Snapshot snapshot;
  for (const fs::directory_entry& found : fs::recursive_directory_iterator(root)) {
    struct statx status {};
    if (::statx(AT_FDCWD, found.path().c_str(), AT_SYMLINK_NOFOLLOW,
                STATX_BASIC_STATS | STATX_BTIME, &status) != 0) {
      continue;
    }
    const auto ns = [](const statx_timestamp& time) {
      return time.tv_sec * 1'000'000'000 + time.tv_nsec;
    };
    Snapshot::Entry entry;
    entry.inode = status.stx_ino;
    entry.size = static_cast<std::int64_t>(status.stx_size);
    entry.mtime_ns = ns(status.stx_mtime);
    entry.born_ns = ns(status.stx_btime);
    if (S_ISREG(status.stx_mode)) entry.kind = Snapshot::Kind::kFile;
    if (S_ISDIR(status.stx_mode)) entry.kind = Snapshot::Kind::kFolder;
    if (S_ISLNK(status.stx_mode)) {
      entry.kind = Snapshot::Kind::kLink;
      entry.target = fs::read_symlink(found.path()).string();
    }
    snapshot.entries[found.path().string().substr(root.string().size() + 1)] = entry;
  }
  return snapshot;
}

namespace {
std::pair<std::uint64_t, std::int64_t> identity(const Snapshot::Entry& entry) {
  return {entry.inode, entry.born_ns};
}
}  // namespace

std::set<std::string> changes(const Snapshot& before, const Snapshot& after) {
  std::set<std::string> paths;
  const auto compare = [&](const Snapshot& one, const Snapshot& other) {
    for (const auto& [path, entry] : one.entries) {
      if (entry.kind != Snapshot::Kind::kFile) continue;
      const auto found = other.entries.find(path);
      const bool same = found != other.entries.end() &&
                        identity(found->second) == identity(entry) &&
                        found->second.mtime_ns == entry.mtime_ns;
      if (!same) paths.insert(path);
    }
  };
  compare(before, after);
  compare(after, before);
  // A renamed file is reported only under its old name, as gone.
  std::set<std::pair<std::uint64_t, std::int64_t>> alive;
  for (const auto& [path, entry] : after.entries) alive.insert(identity(entry));
  std::erase_if(paths, [&](const std::string& path) {
    const auto was = before.entries.find(path);
    const auto is = after.entries.find(path);
    const bool file = is != after.entries.end() && is->second.kind == Snapshot::Kind::kFile;
    return was != before.entries.end() && !file && alive.contains(identity(was->second));
  });
  return paths;
}

}  // namespace assay::oracle
