// Which file an event is about, and what happens to names.
#include <cstdlib>
#include <memory>
#include <utility>

#include "lineage/stamp.h"
#include "lineage/tracker.h"

namespace assay::lineage {

using collect::Event;
using wire::Stamp;
namespace file = file_flag;

namespace {

bool is_below(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

bool is_directory(std::string_view path) {
  struct stat status {};
  return ::lstat(std::string(path).c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

}  // namespace

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

// The path is not known, or leads to another file than we thought: the file system is asked. If it
// has moved on since the event, the event is right.
Tracker::Spot Tracker::look_for(std::string_view path, const Stamp* stamp, Look look) {
  struct stat status {};
  std::string text(path);
  bool there = ::lstat(text.c_str(), &status) == 0;
  const bool is_link = there && S_ISLNK(status.st_mode);
  const bool is_other = there && !is_link && !S_ISREG(status.st_mode);
  if (is_link && look != Look::kName) {
    const std::unique_ptr<char, void (*)(void*)> real(::realpath(text.c_str(), nullptr), std::free);
    there = real && ::lstat(real.get(), &status) == 0 && S_ISREG(status.st_mode) &&
            (stamp == nullptr || same_file(*stamp, to_wire(stamp_of(status))));
    if (there) text = real.get();
  } else if (is_link || is_other) {
    there = false;
  } else if (there && stamp != nullptr && !same_file(*stamp, to_wire(stamp_of(status)))) {
    there = false;
  }
  if (!there && stamp == nullptr) return {};

  const Stamp identity = stamp != nullptr ? *stamp : to_wire(stamp_of(status));
  const Place place = places_.of(text);
  if (place.folder == 0) return {};
  FileId known = files_.find(identity.device, identity.inode);
  if (known != 0 && !files_[known].is_alive()) {
    if (const Spot spot = known_but_dead(known, text, identity, there); spot.file != 0) return spot;
    known = 0;
  }
  if (known != 0) {
    if (!there) return {files_[known].name, known};
    const PathId id = add_path(place.folder, place.name);
    if (paths_[id].now != known) attach(id, known);
    return {id, known};
  }
  if (!there && (is_other || look != Look::kOpened)) return {};
  const PathId id = add_path(place.folder, place.name);
  if (const FileId now = paths_[id].now; now != 0) {
    // Another file has come to the path, and the job did not do it.
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
Tracker::Spot Tracker::known_but_dead(FileId id, std::string_view path, const Stamp& stamp,
                                      bool there) {
  const bool foreign = files_[id].has(file::kForeign);
  const bool same = !foreign || same_content(stamp, files_.stamp(id));
  const PathId name = files_[id].name;
  if (!same || name == 0) return {};
  if (!there) return {name, id};  // a record that came late
  // It is still where it was: the removal was told and then failed.
  const Place place = places_.of(path);
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
    // It was there before the job; if its folder has been moved since, under the old name.
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

// A file that was there before the job may have names that no event has told; those that the job
// makes are all known.
void Tracker::look_for_links(Spot spot) {
  File& found = files_[spot.file];
  if (!found.has(file::kForeign) || found.has(file::kElsewhere)) return;
  struct stat status {};
  const bool there = ::lstat(paths_.text(spot.path).c_str(), &status) == 0;
  if (there && status.st_nlink > found.names) found.flags |= file::kElsewhere;
}

void Tracker::bind(PathId path, FileId id) {
  paths_[path].now = id;
  paths_[path].flags |= path_flag::kTaken;
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

std::string Tracker::folder_before(std::string folder) const {
  for (auto move = folder_moves_.rbegin(); move != folder_moves_.rend(); ++move) {
    if (is_below(folder, move->to)) {
      folder = move->from + folder.substr(move->to.size());
    } else if (move->exchange && is_below(folder, move->from)) {
      folder = move->to + folder.substr(move->from.size());
    }
  }
  return folder;
}

void Tracker::remove(const Event& event, const Stamp* stamp) {
  const Spot spot = locate(event.path, stamp, Look::kName);
  const Place place = places_.of(event.path);
  const PathId id = place.folder != 0 ? paths_.find(place.folder, place.name) : 0;
  if (spot.file == 0 || id == 0) return places_.forget();  // a folder or a link
  paths_[id].flags |= path_flag::kNamed;
  files_[spot.file].flags |= file::kRenamed;
  unbind(id);
  paths_[id].from = 0;
}

void Tracker::rename(const Event& event, const Stamp* stamp) {
  const bool exchange = (event.flags & wire::flag::kExchange) != 0;
  const Spot spot = locate(event.path, stamp, Look::kName);
  const Spot other = exchange ? locate(event.other, nullptr, Look::kName) : Spot{};
  if (spot.file == 0 && other.file == 0) {
    if (is_directory(event.path) || is_directory(event.other)) move_folder(event);
    return places_.forget();
  }
  const Place from = places_.of(event.path);
  const Place to = places_.of(event.other);
  if (from.folder == 0 || to.folder == 0) return;
  const PathId from_id = add_path(from.folder, from.name);
  const PathId to_id = add_path(to.folder, to.name);
  // Two names of one file: POSIX says that nothing happens.
  if (from_id == to_id || paths_[from_id].now == paths_[to_id].now) return;
  std::vector<Move> moves;
  if (const FileId id = paths_[from_id].now) {
    moves.push_back({from_id, to_id, id, origin(from_id, id)});
  }
  if (const FileId id = paths_[to_id].now; exchange && id != 0) {
    moves.push_back({to_id, from_id, id, origin(to_id, id)});
  }
  apply(moves);
}

void Tracker::link(const Event& event, const Stamp* stamp) {
  const Spot spot = locate(event.path, stamp, Look::kLinked);
  const Place place = places_.of(event.other);
  if (place.folder == 0 || (spot.file == 0 && unnamed_ == 0)) return;
  const PathId id = add_path(place.folder, place.name);
  if (paths_[id].now != 0) return;  // it is there already, so the call fails
  paths_[id].flags |= path_flag::kNamed;
  if (spot.file == 0) {
    --unnamed_;  // nobody else can be meant
    paths_[id].from = 0;
    return bind(id, files_.add(stamp, 0));
  }
  File& linked = files_[spot.file];
  linked.flags = static_cast<std::uint16_t>((linked.flags & ~file::kUnnamed) | file::kRenamed);
  const PathId from = spot.path != 0 ? origin(spot.path, spot.file) : 0;
  paths_[id].from = paths_[id].before == spot.file ? 0 : from;
  bind(id, spot.file);
  if (from == 0) return;
  paths_[from].flags |= path_flag::kNamed;
  if (linked.has(file::kForeign) && !linked.has(file::kWritten) && kept(from))
    want(spot.file, spot.path);
}

void Tracker::move_folder(const Event& event) {
  const Place from = places_.of(event.path);
  const Place to = places_.of(event.other);
  if (from.folder == 0 || to.folder == 0) return;
  FolderMove move;
  move.from = paths_.folder_path(from.folder) + "/" + std::string(from.name);
  move.to = paths_.folder_path(to.folder) + "/" + std::string(to.name);
  move.exchange = (event.flags & wire::flag::kExchange) != 0;
  std::vector<Move> moves;
  add_moves(move.from, move.to, moves);
  if (move.exchange) add_moves(move.to, move.from, moves);
  apply(moves);
  folder_moves_.push_back(std::move(move));
}

void Tracker::add_moves(const std::string& from, const std::string& to, std::vector<Move>& moves) {
  const FolderId end = paths_.folder_end();
  for (FolderId folder = 1; folder < end; ++folder) {
    if (!is_below(paths_.folder_path(folder), from)) continue;
    const FolderId target = paths_.folder(to + paths_.folder_path(folder).substr(from.size()));
    for (PathId id = paths_.first_in(folder); id != 0; id = paths_[id].next_in_folder) {
      const FileId moved = paths_[id].now;
      if (moved == 0) continue;
      const PathId target_id = add_path(target, std::string(paths_.name(id)));
      moves.push_back({id, target_id, moved, origin(id, moved)});
    }
  }
}

void Tracker::apply(const std::vector<Move>& moves) {
  for (const Move& move : moves) unbind(move.from);
  for (const Move& move : moves) {
    files_[paths_[move.to].now].flags |= file::kRenamed;  // it goes, though it may have other names
    unbind(move.to);
  }
  for (const Move& move : moves) paths_[move.from].from = 0;
  for (const Move& move : moves) {
    Path& to = paths_[move.to];
    to.from = to.before == move.file ? 0 : move.origin;
    to.flags |= path_flag::kNamed;
    paths_[move.from].flags |= path_flag::kNamed;
    bind(move.to, move.file);
    // Its content goes where it goes, so it counts as read.
    File& moved = files_[move.file];
    moved.flags |= file::kRenamed;
    if (moved.has(file::kForeign) && !moved.has(file::kWritten) && kept(move.origin)) {
      want(move.file, move.to);
    }
  }
}

}  // namespace assay::lineage
