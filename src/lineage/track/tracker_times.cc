// Whether a file changed, judged by its times, and what is done if they are not enough: a file may
// be so new that its times do not show a change, and programs set times (touch, cp -p, rsync).
#include <fmt/format.h>

#include "lineage/track/stamp.h"
#include "lineage/track/tracker.h"

namespace assay::lineage {

using wire::Stamp;
namespace file = file_flag;

// Created by the run, or opened for writing by it and no longer in its state before that.
bool Tracker::has_content_of_run(FileId id, const Stamp* stamp) const {
  const File& file = files_[id];
  if (!file.has(file::kPreexisting)) return true;
  if (!file.has(file::kWritten)) return false;
  return stamp == nullptr || !is_unchanged(id, *stamp);
}

// Whether a file opened for writing has certainly not been written to.
bool Tracker::is_unchanged(FileId id, const Stamp& stamp) const {
  return !files_[id].has(file::kRacy) && looks_unchanged(id, stamp);
}

bool Tracker::looks_unchanged(FileId id, const Stamp& stamp) const {
  const File& file = files_[id];
  if (!same_content(stamp, files_.stamp(id))) return false;
  return stamp.ctime_ns == file.ctime_ns || file.has(file::kRenamed);
}

// For a file opened for writing so soon after its creation that its times may not show a change:
// compares the content. Inherited files are reported when in doubt.
bool Tracker::has_same_content(PathId path, const Stamp& stamp, const hash::Digest& digest) const {
  const FileId id = paths_[path].now;
  if (id == 0 || id != paths_[path].before) return false;
  const File& file = files_[id];
  if (file.has(file::kInherited | file::kPassedOn) || file.digest == 0) return false;
  return looks_unchanged(id, stamp) && digest == files_.digest(id);
}

// A file that the run read and did not write has another stamp than then. If only its times differ,
// the content is compared; if that is not possible, the doubt is reported.
void Tracker::check_changed_input(Located located, const std::optional<Stamp>& now) {
  const File& file = files_[located.file];
  if (!now || !only_times_differ(*now, files_.stamp(located.file)))
    return report_outside_change(located.file);
  if (file.digest == 0) return report_times_changed(located.file);
  HashTask task = task_for(located.file, located.path);
  task.expected = to_hash(*now);
  const HashResult result = queue_.hash_now(std::move(task));
  if (result.state != HashResult::State::kDone) return report_times_changed(located.file);
  if (result.digest != files_.digest(located.file)) report_outside_change(located.file);
}

void Tracker::report_times_changed(FileId id) {
  report_change(id, options_.live
                        ? ": its times changed during the run; its content may have changed"
                        : ": its times changed before it could be hashed; its content may "
                          "have changed");
}

void Tracker::report_outside_change(FileId id) {
  report_change(id, options_.live ? " was changed by another program during the run"
                                  : " was changed before it could be hashed");
}

void Tracker::report_change(FileId id, std::string_view what) {
  File& file = files_[id];
  if (file.has(file::kOutside) || file.name == 0 || !kept(file.name)) return;
  file.flags |= file::kOutside;
  missed_.add("changed", fmt::format("{}{}", paths_.text(file.name), what));
}

}  // namespace assay::lineage
