// Removals, renames and links.
#include <cstdlib>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "lineage/track/stamp.h"
#include "lineage/track/tracker.h"

namespace assay::lineage {

using collect::Event;
using wire::Stamp;
namespace file = file_flag;

// A file that existed before the run may have hard links that no event has mentioned; links that
// the run creates are all known.
void Tracker::find_other_links(Located located) {
  File& found = files_[located.file];
  if (!found.has(file::kPreexisting) || found.has(file::kElsewhere)) return;
  struct stat status {};
  const bool there = ::lstat(paths_.text(located.path).c_str(), &status) == 0;
  if (there && status.st_nlink > found.names) found.flags |= file::kElsewhere;
}

void Tracker::bind(PathId path, FileId id) {
  paths_[path].now = id;
  paths_[path].flags =
      static_cast<std::uint16_t>((paths_[path].flags & ~path_flag::kLinked) | path_flag::kTaken);
  files_[id].name = path;
  ++files_[id].names;
}

void Tracker::unbind(PathId path) {
  const FileId id = std::exchange(paths_[path].now, 0);
  if (id != 0) --files_[id].names;
}

PathId Tracker::origin(PathId path, FileId id) const {
  const Path& at = paths_[path];
  return at.from != 0 && at.before != id ? at.from : path;
}

void Tracker::remove(const Event& event, const Stamp* stamp) {
  const Located located = locate(event.path, stamp, Lookup::kName);
  const ResolvedPath resolved = resolver_.resolve(event.path);
  const PathId id = resolved.folder != 0 ? paths_.find(resolved.folder, resolved.name) : 0;
  if (located.file == 0 || id == 0) return resolver_.forget();  // a folder or a link
  paths_[id].flags |= path_flag::kNamed;
  files_[located.file].flags |= file::kRenamed;
  unbind(id);
  paths_[id].from = 0;
}

void Tracker::rename(const Event& event, const Stamp* stamp) {
  const bool exchange = (event.flags & wire::flag::kExchange) != 0;
  const Located located = locate(event.path, stamp, Lookup::kName);
  const Located other = exchange ? locate(event.other, nullptr, Lookup::kName) : Located{};
  const ResolvedPath from = resolver_.resolve(event.path);
  const ResolvedPath to = resolver_.resolve(event.other);
  if (from.folder == 0 || to.folder == 0) return;
  std::vector<Move> moves;
  if (located.file == 0 || (exchange && other.file == 0)) move_folders(event, stamp, moves);
  if (located.file != 0 || other.file != 0) {
    const PathId from_id = add_path(from.folder, from.name);
    const PathId to_id = add_path(to.folder, to.name);
    // Two names of one file: by POSIX, rename() does nothing.
    if (from_id == to_id || paths_[from_id].now == paths_[to_id].now) return;
    if (const FileId id = paths_[from_id].now) {
      moves.push_back({from_id, to_id, id, origin(from_id, id)});
    }
    if (const FileId id = paths_[to_id].now; exchange && id != 0) {
      moves.push_back({to_id, from_id, id, origin(to_id, id)});
    }
  }
  apply(moves);
}

void Tracker::link(const Event& event, const Stamp* stamp) {
  const Located located = locate(event.path, stamp, Lookup::kLinked);
  const ResolvedPath resolved = resolver_.resolve(event.other);
  if (resolved.folder == 0 || (located.file == 0 && unnamed_ == 0)) return;
  const PathId id = add_path(resolved.folder, resolved.name);
  if (paths_[id].now != 0) return;  // the name exists, so the call fails
  paths_[id].flags |= path_flag::kNamed;
  if (located.file == 0) {
    --unnamed_;  // it must be one of those
    paths_[id].from = 0;
    return bind(id, files_.add(stamp, 0));
  }
  File& linked = files_[located.file];
  linked.flags = static_cast<std::uint16_t>((linked.flags & ~file::kUnnamed) | file::kRenamed);
  const PathId from = located.path != 0 ? origin(located.path, located.file) : 0;
  paths_[id].from = paths_[id].before == located.file ? 0 : from;
  bind(id, located.file);
  paths_[id].flags |= path_flag::kLinked;
  if (from == 0) return;
  paths_[from].flags |= path_flag::kNamed;
  if (linked.has(file::kPreexisting) && !linked.has(file::kWritten) && kept(from))
    request_hash(located.file, located.path);
}

// Several names of a file may have the same origin, which is gone (`mv a b; ln b c`). One of them,
// preferably one that was not linked, counts as the renamed one; the others are links to it.
void Tracker::reconcile_links() {
  std::map<std::pair<FileId, PathId>, PathId> firsts;  // by file and origin
  const auto came_from_gone = [this](PathId id) {
    const Path& path = paths_[id];
    return path.now != 0 && path.now != path.before && path.from != 0 &&
           files_[path.now].names > 1 && paths_[path.from].now != path.now;
  };
  std::vector<PathId> all;
  for (const std::uint16_t linked : {std::uint16_t{0}, path_flag::kLinked}) {
    for (PathId id = 1; id < paths_.end(); ++id) {
      if ((paths_[id].flags & path_flag::kLinked) != linked || !came_from_gone(id)) continue;
      firsts.try_emplace({paths_[id].now, paths_[id].from}, id);
      all.push_back(id);
    }
  }
  for (const PathId id : all) {
    const PathId first = firsts.at({paths_[id].now, paths_[id].from});
    if (first != id) paths_[id].from = first;
  }
}

void Tracker::apply(const std::vector<Move>& moves) {
  for (const Move& move : moves) unbind(move.from);
  for (const Move& move : moves) {
    files_[paths_[move.to].now].flags |= file::kRenamed;  // replaced; it may have other names
    unbind(move.to);
  }
  for (const Move& move : moves) paths_[move.from].from = 0;
  for (const Move& move : moves) {
    Path& to = paths_[move.to];
    to.from = to.before == move.file ? 0 : move.origin;
    to.flags |= path_flag::kNamed;
    paths_[move.from].flags |= path_flag::kNamed;
    bind(move.to, move.file);
    // A moved file counts as read: its content is part of the result.
    File& moved = files_[move.file];
    moved.flags |= file::kRenamed;
    if (moved.has(file::kPreexisting) && !moved.has(file::kWritten) && kept(move.origin)) {
      request_hash(move.file, move.to);
    }
  }
}

}  // namespace assay::lineage
