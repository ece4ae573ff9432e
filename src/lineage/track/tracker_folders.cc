// Renamed folders: every file below gets a new name too, whether or not the run has opened it.
// Files that are not known yet are listed while the system call is stopped.
#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "lineage/track/stamp.h"
#include "lineage/track/tracker.h"

namespace assay::lineage {

using collect::Event;
using wire::Stamp;
namespace file = file_flag;

namespace {

std::optional<Stamp> folder_at(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return std::nullopt;
  return to_wire(stamp_of(status));
}

}  // namespace

// The name that a folder had when the run began.
std::string Tracker::folder_before(std::string folder) const {
  for (auto move = folder_moves_.rbegin(); move != folder_moves_.rend(); ++move) {
    if (is_inside(folder, move->to)) {
      folder = move->from + folder.substr(move->to.size());
    } else if (move->exchange && is_inside(folder, move->from)) {
      folder = move->to + folder.substr(move->from.size());
    }
  }
  return folder;
}

// Collectors report a rename before or after it happens; the folder's inode shows which.
void Tracker::move_folders(const Event& event, const Stamp* stamp, std::vector<Move>& moves) {
  FolderMove move;
  move.from = text_of(resolver_.resolve(event.path));
  move.to = text_of(resolver_.resolve(event.other));
  move.exchange = (event.flags & wire::flag::kExchange) != 0;
  const auto at_from = folder_at(move.from);
  const auto at_to = folder_at(move.to);
  resolver_.forget();
  if (!at_from && !at_to) return;
  const bool done = at_from && stamp != nullptr ? !same_file(*at_from, *stamp) : !at_from;
  if (done ? at_to : at_from) {
    register_files_below(done ? move.to : move.from, move.from, move.to);
    add_moves(move.from, move.to, moves);
  }
  if (move.exchange && (done ? at_from : at_to)) {
    register_files_below(done ? move.from : move.to, move.to, move.from);
    add_moves(move.to, move.from, moves);
  }
  folder_moves_.push_back(std::move(move));
}

// Registers the files below the folder that is now at `current`, was at `from` and will be at `to`.
void Tracker::register_files_below(const std::string& current, const std::string& from,
                                   const std::string& to) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::size_t registered = 0;
  fs::recursive_directory_iterator entry(current, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    struct stat status {};
    const std::string& path = entry->path().native();
    if (::lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    const std::size_t slash = path.rfind('/');
    const std::string inner = path.substr(current.size(), slash - current.size());
    const std::string_view name = std::string_view(path).substr(slash + 1);
    const PathId id = add_path(paths_.folder(from + inner), name);
    if (!kept(id) && !kept(add_path(paths_.folder(to + inner), name))) continue;
    if (++registered > options_.max_moved_files) {
      return missed_.add("folder", fmt::format("{} was moved with more than {} files: those that "
                                               "the run did not open are not listed",
                                               from, options_.max_moved_files));
    }
    register_file(id, to_wire(stamp_of(status)));
  }
  if (!error) return;
  missed_.add("folder", fmt::format("{} was moved and not all files below it could be listed: {}",
                                    from, error.message()));
}

void Tracker::register_file(PathId id, const Stamp& stamp) {
  if (paths_[id].now != 0) return;
  const FileId known = files_.find(stamp.device, stamp.inode);
  const bool alive = known != 0 && files_[known].is_alive();
  attach(id, alive ? known : files_.add(&stamp, file::kPreexisting));
}

void Tracker::add_moves(const std::string& from, const std::string& to, std::vector<Move>& moves) {
  const FolderId end = paths_.folder_end();
  for (FolderId folder = 1; folder < end; ++folder) {
    if (!is_inside(paths_.folder_path(folder), from)) continue;
    const FolderId target = paths_.folder(to + paths_.folder_path(folder).substr(from.size()));
    for (PathId id = paths_.first_in(folder); id != 0; id = paths_[id].next_in_folder) {
      const FileId moved = paths_[id].now;
      if (moved == 0) continue;
      const PathId target_id = add_path(target, std::string(paths_.name(id)));
      moves.push_back({id, target_id, moved, origin(id, moved)});
    }
  }
}

}  // namespace assay::lineage
