#include "lineage/track/tracker.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "lineage/track/stamp.h"
#include "observe/collect/process/inherited.h"

namespace assay::lineage {

using collect::Change;
using collect::Event;
using wire::RecordOp;
using wire::Stamp;
namespace file = file_flag;

namespace {

// A quarter of the process's limit: the rest is for the collector.
std::size_t open_file_limit(std::size_t most) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return std::min<std::size_t>(most, limit.rlim_cur / 4);
}

}  // namespace

Tracker::Tracker(const Options& options, Filter& filter)
    : options_(options),
      filter_(filter),
      resolver_(paths_),
      processes_(options.started_ns),
      max_open_files_(open_file_limit(options.max_open_files)),
      queue_(options.hashing) {}

void Tracker::on_event(const Event& event) {
  take_hash_results();
  processes_.on_event(event);
  const Stamp* const stamp = (event.flags & wire::flag::kNoStamp) != 0 ? nullptr : &event.stamp;
  switch (event.op) {
    case RecordOp::kRead:
    case RecordOp::kWrite:
    case RecordOp::kTruncate: {
      const Located located = locate(event.path, stamp, Lookup::kOpened);
      if (located.file == 0) return;
      note_link_path(event.other.empty() ? event.path : event.other, located.path);
      if (event.source == wire::Source::kInherited) return inherited(located, event);
      if (event.op == RecordOp::kRead) read(located, stamp);
      if (event.op != RecordOp::kRead || (event.flags & wire::flag::kWritable) != 0) {
        write(located.file, stamp);
      }
      return;
    }
    case RecordOp::kExec:
      if (const Located located = locate(event.path, stamp, Lookup::kOpened); located.file != 0) {
        note_link_path(event.path, located.path);
        read(located, stamp);
      }
      return;
    case RecordOp::kCreate:
      return create(event, stamp);
    case RecordOp::kDelete:
      return remove(event, stamp);
    case RecordOp::kRename:
      return rename(event, stamp);
    case RecordOp::kLink:
      return link(event, stamp);
    case RecordOp::kRelink:
      note_link(event.path);
      return resolver_.forget();
    case RecordOp::kList:
      return note_listed(event);
    case RecordOp::kAbsent:
      return note_absent(event.path);
    case RecordOp::kQueried:
      return note_queried(event);
    case RecordOp::kNetwork:
      return note_network(event.path, stamp);
    case RecordOp::kMissed:
      other_namespaces_ = other_namespaces_ || event.path == "namespace";
      return missed_.add(std::string(event.path), std::string(event.other));
    case RecordOp::kProcess:
    case RecordOp::kExit:
    case RecordOp::kNone:
      return;
  }
}

void Tracker::before_change(std::string_view path, const Stamp& stamp, Change change) {
  take_hash_results();
  const Located located =
      locate(path, &stamp, change == Change::kName ? Lookup::kName : Lookup::kOpened);
  if (located.file == 0) return;
  File& file = files_[located.file];
  if (change == Change::kName) find_other_links(located);
  if (has_content_of_run(located.file, &stamp)) return;
  const bool unhashed = file.has(file::kWanted) && file.digest == 0 && !file.has(file::kGivenUp);
  if (change == Change::kName) {
    if (unhashed) hash_before_unlink(located.file, located.path);
    return;
  }
  if (change == Change::kTimes) {
    // Above the limit, whether the file changed will not be known.
    if (unhashed && file.size <= options_.pre_image_limit) hash_now(located.file, located.path);
    return;
  }
  if (unhashed) {
    hash_now(located.file, located.path);
  } else if (!file.has(file::kWanted)) {
    files_.set_state(located.file, stamp);
    if (change == Change::kContentReadable && kept(located.path))
      hash_now(located.file, located.path);
    if (change == Change::kContent && kept(located.path))
      hash_before_write(located.file, located.path);
  }
  if (change == Change::kTruncate) file.flags |= file::kEmptied;
  if (!same_content(stamp, files_.stamp(located.file))) check_changed_input(located, stamp);
  // The state that the end of the run is compared with.
  files_.set_state(located.file, stamp);
  file.flags = static_cast<std::uint16_t>(file.flags & ~file::kRacy);
  // Writing sets the modification time, so only its tick matters.
  Stamp modified = stamp;
  modified.ctime_ns = stamp.mtime_ns;
  if (racily_new(to_hash(modified), file_clock_ns())) file.flags |= file::kRacy;
}

void Tracker::read(Located located, const Stamp* stamp) {
  File& file = files_[located.file];
  // Opened for writing, not emptied, and so new that its times do not tell: it may have been read
  // before it was written, as `sort -o FILE FILE` does. A missing input would be the worse mistake.
  const bool may_be_as_before = file.has(file::kPreexisting) && file.has(file::kRacy) &&
                                !file.has(file::kEmptied) && stamp != nullptr &&
                                looks_unchanged(located.file, *stamp);
  if (has_content_of_run(located.file, stamp) && !may_be_as_before) return;
  const PathId before = origin(located.path, located.file);
  if (paths_[before].before != located.file) return;
  paths_[before].flags |= path_flag::kRead;
  if (!kept(before)) return;
  if (!file.has(file::kWanted | file::kWritten) && stamp != nullptr) {
    files_.set_state(located.file, *stamp);
  }
  file.has(file::kWritten) ? hash_now(located.file, located.path)
                           : request_hash(located.file, located.path);
}

void Tracker::write(FileId id, const Stamp* stamp) {
  File& file = files_[id];
  // Having inherited it as well does not matter once the run opens it itself.
  file.flags = static_cast<std::uint16_t>(file.flags & ~file::kPassedOn);
  if (!file.has(file::kPreexisting) || file.has(file::kWritten)) return;
  if (!file.has(file::kWanted) && stamp != nullptr) files_.set_state(id, *stamp);
  file.flags |= file::kWritten;
}

// Files that the command inherits open; there are no events for what happens through these
// descriptors. Standard output and error count as written; other descriptors may be meant for the
// command or have leaked, which only the file's state can show: see is_written_by_others().
void Tracker::inherited(Located located, const Event& event) {
  const bool writable = event.op != RecordOp::kRead || (event.flags & wire::flag::kWritable) != 0;
  if (event.op == RecordOp::kRead && (!writable || event.stamp.size > 0)) {
    read(located, &event.stamp);
    const File& file = files_[located.file];
    if (writable && file.has(file::kWanted) && file.digest == 0)
      hash_now(located.file, located.path);
  }
  if (!writable) return;
  if (event.op == RecordOp::kWrite && event.stamp.size > 0 && kept(located.path)) {
    files_.set_state(located.file, event.stamp);
    hash_before_write(located.file, located.path);
  }
  write(located.file, &event.stamp);
  File& file = files_[located.file];
  const bool first = !file.has(file::kInherited | file::kPassedOn);
  if (event.value == STDERR_FILENO && first) file.flags |= file::kOnlyErrors;
  if (event.value != STDERR_FILENO) {
    file.flags = static_cast<std::uint16_t>(file.flags & ~file::kOnlyErrors);
  }
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
  // Without a stamp the creation was not exclusive, so it may have gone through a dangling link.
  // (With one, the created file is not a link.)
  if (stamp == nullptr && link_target(path, target)) path = target;
  ResolvedPath resolved = resolver_.resolve(path);
  if (resolved.folder == 0) return create_unreachable(stamp);
  // A link on the way may have been replaced since.
  if (stamp != nullptr && text_of(resolved) != path &&
      !disk_entry(resolved, stamp, Lookup::kName).there) {
    resolved = resolver_.resolve_again(path);
  }
  if (stamp != nullptr && other_namespaces_ && !disk_entry(resolved, stamp, Lookup::kName).there) {
    return create_unreachable(stamp);
  }
  const PathId id = add_path(resolved.folder, resolved.name);
  if (stamp != nullptr) {
    const FileId known = files_.find(stamp->device, stamp->inode);
    if (known != 0 && paths_[id].now == known && !files_[known].has(file::kPreexisting)) return;
    if (known != 0 && is_late_creation(id, known, *stamp)) {
      File& file = files_[known];
      file.flags = static_cast<std::uint16_t>(file.flags & ~(file::kPreexisting | file::kWanted));
      paths_[id].before = 0;
      paths_[id].flags = static_cast<std::uint16_t>(paths_[id].flags & ~path_flag::kRead);
      return;
    }
  }
  // A file is known to be here already: the end of the run will show which one it is.
  if (paths_[id].now != 0) paths_[id].flags |= path_flag::kNamed;
  unbind(id);
  paths_[id].from = 0;
  bind(id, files_.add(stamp, 0));
}

// A file was created in another mount namespace. It may be seen again if it has a name in this one.
void Tracker::create_unreachable(const Stamp* stamp) {
  if (stamp != nullptr) files_.add(stamp, file::kUnnamed);
}

// Events of different processes may arrive out of order: a file may be read or renamed before its
// creation is reported. It was then taken for one that existed before the run. A file that really
// did, and whose inode was reused, is gone and older than the creation.
bool Tracker::is_late_creation(PathId path, FileId id, const Stamp& stamp) const {
  const File& file = files_[id];
  const bool was_here = paths_[path].before == id || paths_[path].now == id;
  if (!file.has(file::kPreexisting) || !was_here) return false;
  return file.is_alive() ? file.ctime_ns >= stamp.ctime_ns : file.ctime_ns > stamp.ctime_ns;
}

}  // namespace assay::lineage
