// What times say of content, and what is done where they do not say enough: a file may be so new
// that a change need not show, and programs set times (touch, cp -p, rsync), the run among them.
#include <fmt/format.h>

#include "lineage/track/stamp.h"
#include "lineage/track/tracker.h"

namespace assay::lineage {

using wire::Stamp;
namespace file = file_flag;

// Made by the run, or opened for writing by it and not in the state it was in before that.
bool Tracker::has_run_content(FileId id, const Stamp* stamp) const {
  const File& file = files_[id];
  if (!file.has(file::kForeign)) return true;
  if (!file.has(file::kWritten)) return false;
  return stamp == nullptr || !is_unchanged(id, *stamp);
}

// Whether a file that is open for writing has surely not been written to.
bool Tracker::is_unchanged(FileId id, const Stamp& stamp) const {
  return !files_[id].has(file::kRacy) && looks_unchanged(id, stamp);
}

bool Tracker::looks_unchanged(FileId id, const Stamp& stamp) const {
  const File& file = files_[id];
  if (!same_content(stamp, files_.stamp(id))) return false;
  return stamp.ctime_ns == file.ctime_ns || file.has(file::kRenamed);
}

// Of a file that was opened for writing so soon after it was made that its times need not show a
// change: its content does. Files that were passed open are told in any case of doubt.
bool Tracker::holds_the_same(PathId path, const Stamp& stamp, const hash::Digest& digest) const {
  const FileId id = paths_[path].now;
  if (id == 0 || id != paths_[path].before) return false;
  const File& file = files_[id];
  if (file.has(file::kInherited | file::kPassedOn) || file.digest == 0) return false;
  return looks_unchanged(id, stamp) && digest == files_.digest(id);
}

// A file that the run read and did not write to is not as it was then. If no more than its times
// show that, its content tells; where that is not known, it is said.
void Tracker::doubt(Spot spot, const std::optional<Stamp>& now) {
  const File& file = files_[spot.file];
  if (!now || !only_times_differ(*now, files_.stamp(spot.file))) return changed_outside(spot.file);
  if (file.digest == 0) return times_changed(spot.file);
  HashTask task = task_for(spot.file, spot.path);
  task.expected = to_hash(*now);
  const HashResult result = queue_.hash_now(std::move(task));
  if (result.state != HashResult::State::kDone) return times_changed(spot.file);
  if (result.digest != files_.digest(spot.file)) changed_outside(spot.file);
}

void Tracker::times_changed(FileId id) {
  say_changed(id, options_.live ? ": its times changed while the run ran; its content may have"
                                : ": its times changed before it could be hashed; its content may "
                                  "have");
}

void Tracker::changed_outside(FileId id) {
  say_changed(id, options_.live ? " was changed by another program while the run ran"
                                : " was changed before it could be hashed");
}

void Tracker::say_changed(FileId id, std::string_view what) {
  File& file = files_[id];
  if (file.has(file::kOutside) || file.name == 0 || !kept(file.name)) return;
  file.flags |= file::kOutside;
  missed_.add("changed", fmt::format("{}{}", paths_.text(file.name), what));
}

}  // namespace assay::lineage
