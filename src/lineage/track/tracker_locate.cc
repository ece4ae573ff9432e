// Which file an event is about.
#include <cstdlib>
#include <memory>

#include "lineage/track/stamp.h"
#include "lineage/track/tracker.h"

namespace assay::lineage {

using wire::Stamp;
namespace file = file_flag;

// The fast path of nearly all events: two look-ups and no system call.
Tracker::Located Tracker::locate(std::string_view path, const Stamp* stamp, Lookup lookup) {
  const ResolvedPath resolved = resolver_.resolve(path);
  if (resolved.folder == 0) return {};
  const PathId id = paths_.find(resolved.folder, resolved.name);
  const FileId now = id != 0 ? paths_[id].now : 0;
  if (now != 0) {
    if (stamp == nullptr || files_.is(now, *stamp)) return {id, now};
    if (files_[now].inode == 0) {
      files_.identify(now, *stamp);
      return {id, now};
    }
  }
  return locate_on_disk(path, stamp, lookup);
}

std::string Tracker::text_of(const ResolvedPath& resolved) const {
  return paths_.folder_path(resolved.folder) + "/" + std::string(resolved.name);
}

Tracker::DiskEntry Tracker::disk_entry(const ResolvedPath& resolved, const Stamp* stamp,
                                       Lookup lookup) const {
  DiskEntry seen{.path = text_of(resolved)};
  struct stat status {};
  bool there = ::lstat(seen.path.c_str(), &status) == 0;
  if (there && S_ISLNK(status.st_mode)) {
    const std::unique_ptr<char, void (*)(void*)> real(
        lookup == Lookup::kName ? nullptr : ::realpath(seen.path.c_str(), nullptr), std::free);
    there = real && ::lstat(real.get(), &status) == 0 && S_ISREG(status.st_mode);
    if (there) seen.path = real.get();
  } else if (there && !S_ISREG(status.st_mode)) {
    seen.other = true;
    there = false;
  }
  seen.stamp = to_wire(stamp_of(status));
  seen.there = there && (stamp == nullptr || same_file(*stamp, seen.stamp));
  if (!seen.there) seen.path = text_of(resolved);
  return seen;
}

// The path is not known, or leads to an unexpected file: consults the file system. If that has
// changed since the event, the event is right.
Tracker::Located Tracker::locate_on_disk(std::string_view path, const Stamp* stamp, Lookup lookup) {
  ResolvedPath resolved = resolver_.resolve(path);
  DiskEntry seen = disk_entry(resolved, stamp, lookup);
  if (!seen.there) {
    // Perhaps only a link on the way has changed, possibly by another program.
    const ResolvedPath now = resolver_.resolve_again(path);
    if (now.folder != resolved.folder) {
      if (DiskEntry other = disk_entry(now, stamp, lookup); other.there) {
        resolved = now;
        seen = std::move(other);
      }
    }
  }
  const bool there = seen.there;
  if (!there && stamp == nullptr) return {};
  // A folder or a device may have the inode of a file that is gone.
  if (seen.other && stamp != nullptr && same_file(*stamp, seen.stamp)) return {};

  const Stamp identity = stamp != nullptr ? *stamp : seen.stamp;
  if (there) resolved = resolver_.from_canonical(seen.path);
  FileId known = files_.find(identity.device, identity.inode);
  if (known != 0 && !files_[known].is_alive()) {
    if (const Located located = find_unlinked(known, resolved, identity, there); located.file != 0)
      return located;
    known = 0;
  }
  if (known != 0) {
    if (!there) return {files_[known].name, known};
    const PathId id = add_path(resolved.folder, resolved.name);
    if (paths_[id].now != known) attach(id, known);
    return {id, known};
  }
  if (!there && (other_namespaces_ || seen.other || lookup != Lookup::kOpened)) return {};
  const PathId id = add_path(resolved.folder, resolved.name);
  if (const FileId now = paths_[id].now; now != 0) {
    // Another file is at the path, and the run did not put it there.
    if (!there) return {};
    if (files_[now].inode != 0) report_outside_change(now);
    files_.identify(now, identity);
    return {id, now};
  }
  const FileId added = files_.add(&identity, file::kPreexisting);
  attach(id, added);
  return {id, added};
}

// The inode belonged to a file that has lost its last name. None: it has been reused.
Tracker::Located Tracker::find_unlinked(FileId id, const ResolvedPath& resolved, const Stamp& stamp,
                                        bool there) {
  const bool foreign = files_[id].has(file::kPreexisting);
  const bool same = !foreign || same_content(stamp, files_.stamp(id));
  const PathId name = files_[id].name;
  if (!same || name == 0) return {};
  if (!there) return {name, id};  // a late event
  // It is still there: the removal was reported and then failed.
  if (paths_.find(resolved.folder, resolved.name) != name) return {};
  if (paths_[name].now == 0) bind(name, id);
  return {name, id};
}

PathId Tracker::add_path(FolderId folder, std::string_view name) {
  const PathId end = paths_.end();
  const PathId id = paths_.find_or_add(folder, name);
  if (id == end) {
    const std::string& text = paths_.folder_path(folder);
    std::int32_t& rule = paths_.folder_rule(folder);
    if (rule < 0) rule = filter_.rule_for_folder(text);
    paths_[id].rule = filter_.rule_for_name(static_cast<RuleId>(rule), text, name);
  }
  return id;
}

// Binds a file that was found at a path where it was not known to be.
void Tracker::attach(PathId id, FileId found) {
  unbind(id);
  const bool first = (paths_[id].flags & path_flag::kTaken) == 0;
  if (!files_[found].has(file::kPreexisting)) {
    paths_[id].from = files_[found].name;
    paths_[id].flags |= path_flag::kNamed;
  } else if (!first) {
    if (paths_[id].before != found) files_[found].flags |= file::kAppeared;
  } else {
    // It existed before the run, under the old name if its folder has been renamed since.
    const std::string& folder = paths_.folder_path(paths_[id].folder);
    const std::string before = folder_moves_.empty() ? folder : folder_before(folder);
    PathId old = id;
    if (before != folder) {
      old = add_path(paths_.folder(before), std::string(paths_.name(id)));
      if ((paths_[old].flags & path_flag::kTaken) != 0) old = id;
    }
    paths_[old].before = found;
    paths_[old].flags |= path_flag::kTaken;
    if (old != id) {
      paths_[id].from = old;
      paths_[old].flags |= path_flag::kNamed;
      paths_[id].flags |= path_flag::kNamed;
    }
  }
  bind(id, found);
}

}  // namespace assay::lineage
