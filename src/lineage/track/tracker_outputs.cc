// Outputs: which files differ from before, their content, and why other files are left out.
//
// Outputs are hashed in windows, so that the digests of a million files need not be kept.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "lineage/track/path_statuses.h"
#include "lineage/track/stamp.h"
#include "lineage/track/tracker.h"

namespace assay::lineage {

using store::OutputStatus;
using wire::Stamp;
namespace file = file_flag;

namespace {

constexpr std::size_t kWindow = 4096;

const FilterRule kUnchangedFile{"unchanged", false,
                                "the run opened it for writing and did not change it"};
const FilterRule kSharedFile{
    "shared", false, "a program outside the run has it open for writing, too, and wrote to it"};
const FilterRule kGoneFile{"gone", false, "the run created it, and it was removed"};

}  // namespace

struct Tracker::Changed {
  PathId path = 0;
  PathId from = 0;
  OutputStatus status = OutputStatus::kCreated;
  Stamp stamp;
  std::optional<hash::Digest> digest;
};

// Whether change_at() looks at what is there.
bool Tracker::may_have_changed(PathId id) const {
  const Path& path = paths_[id];
  return path.now != 0 && (path.now != path.before || files_[path.now].has(file::kWritten));
}

std::optional<Tracker::Changed> Tracker::change_at(PathId id) {
  return change_at(id, may_have_changed(id) ? status_at(paths_.text(id)) : PathStatus());
}

// What has changed at this path since before the run. `now` is what is there.
std::optional<Tracker::Changed> Tracker::change_at(PathId id, PathStatus now) {
  const Path& path = paths_[id];
  Changed changed{.path = id};
  const bool moved_away = (path.flags & path_flag::kMovedAway) != 0;
  if (path.now == 0) {
    if (path.before == 0 || moved_away) return std::nullopt;
    changed.status = OutputStatus::kDeleted;
    return changed;
  }
  const File& file = files_[path.now];
  const bool same_file = path.now == path.before;
  if (same_file && !file.has(file::kWritten)) return std::nullopt;
  auto& [real, inaccessible] = now;
  // Hashing it will fail and report why.
  if (inaccessible) real = files_.stamp(path.now);
  if (same_file && is_written_by_others(path.now, real)) return std::nullopt;
  if (!real) {
    if (path.before == 0) {
      paths_[id].flags |= path_flag::kGone;
      return std::nullopt;
    }
    missed_.add("gone", fmt::format("{} was removed by another program", paths_.text(id)));
    changed.status = OutputStatus::kDeleted;
    return changed;
  }
  changed.stamp = *real;
  if (same_file) {
    const bool same = (path.flags & path_flag::kSame) != 0;
    const bool unchanged = same || (!inaccessible && is_unchanged(path.now, *real));
    // Empty standard output is a result (`grep x in > out`): the shell has made the file.
    const bool made_for_it = file.has(file::kInherited) && file.has(file::kInheritedEmpty);
    if (unchanged && !made_for_it) return std::nullopt;
    // An empty file that was only standard error is not a result.
    const bool no_errors = file.has(file::kOnlyErrors) && file.has(file::kInheritedEmpty);
    if (no_errors && real->size == 0) return std::nullopt;
    changed.status =
        file.has(file::kInheritedEmpty) ? OutputStatus::kCreated : OutputStatus::kModified;
    return changed;
  }
  const bool linked = path.from != 0 && paths_[path.from].now == path.now;
  if (file.has(file::kPreexisting)) {
    if (path.from == 0) {
      report_outside_change(path.now);
      return std::nullopt;
    }
    changed.status = linked ? OutputStatus::kLinked : OutputStatus::kRenamed;
    changed.from = path.from;
    const bool still = !file.has(file::kWritten) && same_content(*real, files_.stamp(path.now));
    if (still && file.digest != 0) changed.digest = files_.digest(path.now);
  } else if (linked) {
    changed.status = OutputStatus::kLinked;
    changed.from = path.from;
  } else {
    changed.status = path.before != 0 ? OutputStatus::kModified : OutputStatus::kCreated;
  }
  return changed;
}

// For a file that the run inherited open, not as a standard stream, and did not open itself. If the
// file did not change, nothing was written. If it did, the run wrote it, unless other programs that
// have it open wrote to it too. Then it is unknown whose change it was; a file that several
// programs write to at once is treated as a stream between them, like a pipe, and not as an output.
// The same if the name now leads to another file and the run did not do that: a log was rotated.
bool Tracker::is_written_by_others(FileId id, const std::optional<Stamp>& now) const {
  const File& file = files_[id];
  if (!file.has(file::kPassedOn) || file.has(file::kInherited)) return false;
  if (!now || !files_.is(id, *now)) return true;
  if (!options_.written_outside || is_unchanged(id, *now)) return false;
  return options_.written_outside(*now);
}

void Tracker::report_outputs(const std::vector<PathId>& order, Results& results) {
  std::vector<Changed> window;
  for (std::size_t at = 0; at < order.size();) {
    window.clear();
    const auto next = std::span(order).subspan(at, std::min(kWindow, order.size() - at));
    const std::vector<PathStatus> now = statuses_of(next.size(), [&](std::size_t i) {
      const bool needed = kept(next[i]) && may_have_changed(next[i]);
      return needed ? place_of(next[i]) : PlaceOfFile();
    });
    for (std::size_t i = 0; i < next.size(); ++i) {
      if (!kept(next[i])) continue;
      if (auto changed = change_at(next[i], now[i])) window.push_back(*changed);
    }
    at += next.size();
    hash_outputs(window);
    for (const Changed& changed : window) {
      if (changed.digest && has_same_content(changed.path, changed.stamp, *changed.digest)) {
        paths_[changed.path].flags |= path_flag::kSame;
        continue;
      }
      if (filter_.is_downloaded(paths_[changed.path].rule)) {
        if (changed.status == OutputStatus::kDeleted) continue;
        results.input({paths_.text(changed.path), changed.digest, changed.stamp.size},
                      filter_.rule(paths_[changed.path].rule));
        continue;
      }
      store::Output output{.path = paths_.text(changed.path),
                           .blake3 = changed.digest,
                           .size = changed.stamp.size,
                           .status = changed.status};
      if (changed.from != 0) output.from = paths_.text(changed.from);
      output.before = before_of(changed);
      results.output(std::move(output), filter_.rule(paths_[changed.path].rule));
    }
  }
}

// The content before the run, if the run modified the file without truncating it.
std::optional<hash::Digest> Tracker::before_of(const Changed& changed) const {
  const FileId id = paths_[changed.path].now;
  if (id == 0 || changed.status == OutputStatus::kDeleted) return std::nullopt;
  const File& file = files_[id];
  const bool into = file.has(file::kPreexisting) && file.has(file::kWritten);
  if (!into || file.has(file::kEmptied) || file.digest == 0) return std::nullopt;
  return files_.digest(id);
}

void Tracker::hash_outputs(std::vector<Changed>& window) {
  for (std::uint32_t i = 0; i < window.size(); ++i) {
    const Changed& changed = window[i];
    if (changed.digest || changed.status == OutputStatus::kDeleted) continue;
    HashTask task;
    task.id = i;
    task.folder = &paths_.folder_path(paths_[changed.path].folder);
    task.name = paths_.name_text(changed.path);
    task.expected = to_hash(changed.stamp);
    queue_.submit(std::move(task));
  }
  taken_.clear();
  while (queue_.wait(taken_)) {
    for (const HashResult& result : taken_) {
      Changed& changed = window[result.id];
      if (result.state == HashResult::State::kDone) {
        changed.digest = result.digest;
      } else if (result.state == HashResult::State::kUnreadable) {
        missed_.add("unreadable", fmt::format("{}: {}", paths_.text(changed.path), *result.error));
      } else {
        missed_.add("changed", fmt::format("{} was still being changed after the run had ended",
                                           paths_.text(changed.path)));
      }
    }
    taken_.clear();
  }
}

// Why this path is neither input nor output; nullptr: the run did not touch it.
const FilterRule* Tracker::reason_left_out(PathId id) const {
  const Path& path = paths_[id];
  const bool made = (path.now == 0 && path.before == 0) || (path.flags & path_flag::kGone) != 0;
  const bool opened = path.now != 0 && files_[path.now].has(file::kWritten);
  const bool touched =
      made || opened || path.now != path.before || (path.flags & path_flag::kRead) != 0;
  if (!touched) return nullptr;
  if (!kept(id)) return &filter_.rule(path.rule);
  if (made) return &kGoneFile;
  return opened && path.now == path.before ? &kUnchangedFile : nullptr;
}

void Tracker::report_left_out(const std::vector<PathId>& order, Results& results) {
  for (const PathId id : order) {
    const Path& path = paths_[id];
    if ((path.flags & path_flag::kTaken) == 0) continue;
    const FilterRule* rule = reason_left_out(id);
    if (rule == nullptr) continue;
    if (rule == &kUnchangedFile) {
      // Computed again, for the few files that were opened for writing.
      if (change_at(id)) continue;
      if (is_written_by_others(path.now, status_at(paths_.text(id)).stamp)) rule = &kSharedFile;
    }
    const bool read = (path.flags & path_flag::kRead) != 0;
    const bool changed = rule != &kUnchangedFile && (path.now != path.before || path.now == 0 ||
                                                     files_[path.now].has(file::kWritten));
    results.left_out({.path = paths_.text(id), .read = read, .changed = changed}, *rule);
  }
}

}  // namespace assay::lineage
