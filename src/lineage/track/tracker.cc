#include "lineage/track/tracker.h"

#include <sys/resource.h>

#include <algorithm>

#include "lineage/track/stamp.h"
#include "observe/collect/process/inherited.h"

namespace assay::lineage {

using collect::Change;
using collect::Event;
using wire::Op;
using wire::Stamp;
namespace file = file_flag;

namespace {

// A quarter of what the process may have: the rest is the collector's.
std::size_t held_limit(std::size_t most) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return std::min<std::size_t>(most, limit.rlim_cur / 4);
}

}  // namespace

Tracker::Tracker(const Options& options, Filter& filter)
    : options_(options),
      filter_(filter),
      places_(paths_),
      processes_(options.started_ns),
      most_held_(held_limit(options.most_held)),
      queue_(options.hashing) {}

void Tracker::happened(const Event& event) {
  take_digests();
  processes_.happened(event);
  const Stamp* const stamp = (event.flags & wire::flag::kNoStamp) != 0 ? nullptr : &event.stamp;
  switch (event.op) {
    case Op::kRead:
    case Op::kWrite:
    case Op::kTruncate: {
      const Spot spot = locate(event.path, stamp, Look::kOpened);
      if (spot.file == 0) return;
      if (event.source == wire::Source::kInherited) return inherited(spot, event);
      if (event.op == Op::kRead) read(spot, stamp);
      if (event.op != Op::kRead || (event.flags & wire::flag::kWritable) != 0) {
        write(spot.file, stamp);
      }
      return;
    }
    case Op::kExec:
      if (const Spot spot = locate(event.path, stamp, Look::kOpened); spot.file != 0) {
        read(spot, stamp);
      }
      return;
    case Op::kCreate:
      return create(event, stamp);
    case Op::kDelete:
      return remove(event, stamp);
    case Op::kRename:
      return rename(event, stamp);
    case Op::kLink:
      return link(event, stamp);
    case Op::kRelink:
      return places_.forget();
    case Op::kMissed:
      other_views_ = other_views_ || event.path == "namespace";
      return missed_.add(std::string(event.path), std::string(event.other));
    case Op::kProcess:
    case Op::kExit:
    case Op::kNone:
      return;
  }
}

void Tracker::about_to_change(std::string_view path, const Stamp& stamp, Change change) {
  take_digests();
  const Spot spot = locate(path, &stamp, change == Change::kName ? Look::kName : Look::kOpened);
  if (spot.file == 0) return;
  File& file = files_[spot.file];
  if (change == Change::kName) look_for_links(spot);
  if (has_run_content(spot.file, &stamp)) return;
  const bool unhashed = file.has(file::kWanted) && file.digest == 0 && !file.has(file::kGivenUp);
  if (change == Change::kName) {
    if (unhashed) hold(spot.file, spot.path);
    return;
  }
  if (change == Change::kTimes) {
    // Nobody may wait for the largest; whether they changed is not known then.
    if (unhashed && file.size <= options_.pre_image_limit) want_now(spot.file, spot.path);
    return;
  }
  if (unhashed) {
    want_now(spot.file, spot.path);
  } else if (!file.has(file::kWanted)) {
    files_.set_state(spot.file, stamp);
    if (change == Change::kContentReadable && kept(spot.path)) want_now(spot.file, spot.path);
    if (change == Change::kContent && kept(spot.path)) note_before(spot.file, spot.path);
  }
  if (change == Change::kCut) file.flags |= file::kEmptied;
  if (!same_content(stamp, files_.stamp(spot.file))) doubt(spot, stamp);
  // What the end is compared with, whenever it was read.
  files_.set_state(spot.file, stamp);
  file.flags = static_cast<std::uint16_t>(file.flags & ~file::kRacy);
  // Writing sets the time of modification, so only that one's tick matters.
  Stamp modified = stamp;
  modified.ctime_ns = stamp.mtime_ns;
  if (racily_new(to_hash(modified), file_clock_ns())) file.flags |= file::kRacy;
}

void Tracker::read(Spot spot, const Stamp* stamp) {
  File& file = files_[spot.file];
  if (has_run_content(spot.file, stamp)) return;
  const PathId before = origin(spot.path, spot.file);
  if (paths_[before].before != spot.file) return;
  paths_[before].flags |= path_flag::kRead;
  if (!kept(before)) return;
  if (!file.has(file::kWanted | file::kWritten) && stamp != nullptr) {
    files_.set_state(spot.file, *stamp);
  }
  file.has(file::kWritten) ? want_now(spot.file, spot.path) : want(spot.file, spot.path);
}

void Tracker::write(FileId id, const Stamp* stamp) {
  File& file = files_[id];
  // That it was passed on as well does not matter where the run opens it by itself.
  file.flags = static_cast<std::uint16_t>(file.flags & ~file::kPassedOn);
  if (!file.has(file::kForeign) || file.has(file::kWritten)) return;
  if (!file.has(file::kWanted) && stamp != nullptr) files_.set_state(id, *stamp);
  file.flags |= file::kWritten;
}

// Whoever started the command opened these, and nobody tells what happens through the descriptor.
// Standard output and error are the command's to write; other descriptors may be meant for it or
// have been forgotten open, and only the file can show: see is_anothers().
void Tracker::inherited(Spot spot, const Event& event) {
  const bool writable = event.op != Op::kRead || (event.flags & wire::flag::kWritable) != 0;
  if (event.op == Op::kRead && (!writable || event.stamp.size > 0)) {
    read(spot, &event.stamp);
    const File& file = files_[spot.file];
    if (writable && file.has(file::kWanted) && file.digest == 0) want_now(spot.file, spot.path);
  }
  if (!writable) return;
  if (event.op == Op::kWrite && event.stamp.size > 0 && kept(spot.path)) {
    files_.set_state(spot.file, event.stamp);
    note_before(spot.file, spot.path);
  }
  write(spot.file, &event.stamp);
  File& file = files_[spot.file];
  file.flags |= collect::is_standard_stream(event.value) ? file::kInherited : file::kPassedOn;
  if (event.stamp.size == 0) file.flags |= file::kInheritedEmpty;
  if ((event.flags & wire::flag::kRacy) != 0) file.flags |= file::kRacy;
}

void Tracker::create(const Event& event, const Stamp* stamp) {
  if ((event.flags & wire::flag::kUnnamed) != 0) {
    files_.add(stamp, file::kUnnamed);
    if (stamp == nullptr) ++unnamed_;
    return;
  }
  std::string target;
  std::string_view path = event.path;
  // Without a stamp it was not an exclusive creation, and those go through a link that leads to
  // nothing. (With one, the file that was made is not a link.)
  if (stamp == nullptr && link_target(path, target)) path = target;
  Place place = places_.of(path);
  if (place.folder == 0) return elsewhere(stamp);
  // Through a link that may have been turned since.
  if (stamp != nullptr && text_of(place) != path && !sight(place, stamp, Look::kName).there) {
    place = places_.again(path);
  }
  if (stamp != nullptr && other_views_ && !sight(place, stamp, Look::kName).there) {
    return elsewhere(stamp);
  }
  const PathId id = add_path(place.folder, place.name);
  if (stamp != nullptr) {
    const FileId known = files_.find(stamp->device, stamp->inode);
    if (known != 0 && paths_[id].now == known && !files_[known].has(file::kForeign)) return;
    if (known != 0 && made_before_told(id, known, *stamp)) {
      File& file = files_[known];
      file.flags = static_cast<std::uint16_t>(file.flags & ~(file::kForeign | file::kWanted));
      paths_[id].before = 0;
      paths_[id].flags = static_cast<std::uint16_t>(paths_[id].flags & ~path_flag::kRead);
      return;
    }
  }
  // If something is known to be here, somebody is wrong: the end will show who.
  if (paths_[id].now != 0) paths_[id].flags |= path_flag::kNamed;
  unbind(id);
  paths_[id].from = 0;
  bind(id, files_.add(stamp, 0));
}

// A file was made in another mount namespace. If it has a name here too, we may meet it again.
void Tracker::elsewhere(const Stamp* stamp) {
  if (stamp != nullptr) files_.add(stamp, file::kUnnamed);
}

// Records of different processes may come in another order than what they tell: a file may be read
// or renamed before its creation is told. Then it was taken for one that was there before the run.
// A file that really was, and whose inode was used again, is gone and older than the creation.
bool Tracker::made_before_told(PathId path, FileId id, const Stamp& stamp) const {
  const File& file = files_[id];
  const bool was_here = paths_[path].before == id || paths_[path].now == id;
  if (!file.has(file::kForeign) || !was_here) return false;
  return file.is_alive() ? file.ctime_ns >= stamp.ctime_ns : file.ctime_ns > stamp.ctime_ns;
}

}  // namespace assay::lineage
