// Which file an event is about.
#include <cstdlib>
#include <memory>

#include "lineage/track/stamp.h"
#include "lineage/track/tracker.h"

namespace assay::lineage {

using wire::Stamp;
namespace file = file_flag;

// Nearly all events end here: two look-ups and no system call.
Tracker::Spot Tracker::locate(std::string_view path, const Stamp* stamp, Look look) {
  const Place place = places_.of(path);
  if (place.folder == 0) return {};
  const PathId id = paths_.find(place.folder, place.name);
  const FileId now = id != 0 ? paths_[id].now : 0;
  if (now != 0) {
    if (stamp == nullptr || files_.is(now, *stamp)) return {id, now};
    if (files_[now].inode == 0) {
      files_.identify(now, *stamp);
      return {id, now};
    }
  }
  return look_for(path, stamp, look);
}

std::string Tracker::text_of(const Place& place) const {
  return paths_.folder_path(place.folder) + "/" + std::string(place.name);
}

Tracker::Sight Tracker::sight(const Place& place, const Stamp* stamp, Look look) const {
  Sight seen{.path = text_of(place)};
  struct stat status {};
  bool there = ::lstat(seen.path.c_str(), &status) == 0;
  if (there && S_ISLNK(status.st_mode)) {
    const std::unique_ptr<char, void (*)(void*)> real(
        look == Look::kName ? nullptr : ::realpath(seen.path.c_str(), nullptr), std::free);
    there = real && ::lstat(real.get(), &status) == 0 && S_ISREG(status.st_mode);
    if (there) seen.path = real.get();
  } else if (there && !S_ISREG(status.st_mode)) {
    seen.other = true;
    there = false;
  }
  seen.stamp = to_wire(stamp_of(status));
  seen.there = there && (stamp == nullptr || same_file(*stamp, seen.stamp));
  if (!seen.there) seen.path = text_of(place);
  return seen;
}

// The path is not known, or leads to another file than we thought: the file system is asked. If it
// has moved on since the event, the event is right.
Tracker::Spot Tracker::look_for(std::string_view path, const Stamp* stamp, Look look) {
  Place place = places_.of(path);
  Sight seen = sight(place, stamp, look);
  if (!seen.there) {
    // Perhaps only the folder is another by now: whoever changed the link need not be of the run.
    const Place now = places_.again(path);
    if (now.folder != place.folder) {
      if (Sight other = sight(now, stamp, look); other.there) {
        place = now;
        seen = std::move(other);
      }
    }
  }
  const bool there = seen.there;
  if (!there && stamp == nullptr) return {};
  // A folder or a device may have the number of a file that is gone.
  if (seen.other && stamp != nullptr && same_file(*stamp, seen.stamp)) return {};

  const Stamp identity = stamp != nullptr ? *stamp : seen.stamp;
  if (there) place = places_.of_canonical(seen.path);
  FileId known = files_.find(identity.device, identity.inode);
  if (known != 0 && !files_[known].is_alive()) {
    if (const Spot spot = known_but_dead(known, place, identity, there); spot.file != 0)
      return spot;
    known = 0;
  }
  if (known != 0) {
    if (!there) return {files_[known].name, known};
    const PathId id = add_path(place.folder, place.name);
    if (paths_[id].now != known) attach(id, known);
    return {id, known};
  }
  if (!there && (other_views_ || seen.other || look != Look::kOpened)) return {};
  const PathId id = add_path(place.folder, place.name);
  if (const FileId now = paths_[id].now; now != 0) {
    // Another file has come to the path, and the run did not do it.
    if (!there) return {};
    if (files_[now].inode != 0) changed_outside(now);
    files_.identify(now, identity);
    return {id, now};
  }
  const FileId added = files_.add(&identity, file::kForeign);
  attach(id, added);
  return {id, added};
}

// The inode is known from a file that has lost its last name. Nothing: it is another file by now.
Tracker::Spot Tracker::known_but_dead(FileId id, const Place& place, const Stamp& stamp,
                                      bool there) {
  const bool foreign = files_[id].has(file::kForeign);
  const bool same = !foreign || same_content(stamp, files_.stamp(id));
  const PathId name = files_[id].name;
  if (!same || name == 0) return {};
  if (!there) return {name, id};  // a record that came late
  // It is still where it was: the removal was told and then failed.
  if (paths_.find(place.folder, place.name) != name) return {};
  if (paths_[name].now == 0) bind(name, id);
  return {name, id};
}

PathId Tracker::add_path(FolderId folder, std::string_view name) {
  const PathId end = paths_.end();
  const PathId id = paths_.find_or_add(folder, name);
  if (id == end) {
    const std::string& text = paths_.folder_path(folder);
    std::int32_t& verdict = paths_.verdict(folder);
    if (verdict < 0) verdict = filter_.judge_folder(text);
    paths_[id].rule = filter_.judge_name(static_cast<RuleId>(verdict), text, name);
  }
  return id;
}

// A file is found at a path where we did not know it.
void Tracker::attach(PathId id, FileId found) {
  unbind(id);
  const bool first = (paths_[id].flags & path_flag::kTaken) == 0;
  if (!files_[found].has(file::kForeign)) {
    paths_[id].from = files_[found].name;
    paths_[id].flags |= path_flag::kNamed;
  } else if (!first) {
    if (paths_[id].before != found) files_[found].flags |= file::kAppeared;
  } else {
    // It was there before the run; if its folder has been moved since, under the old name.
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
