// The end of a run: corrects recorded names by what is on disk, hashes the remaining files with all
// processors, and reports the results in the order of their paths.
#include <algorithm>
#include <span>

#include "lineage/track/path_statuses.h"
#include "lineage/track/stamp.h"
#include "lineage/track/tracker.h"

namespace assay::lineage {

namespace file = file_flag;

namespace {

// Bounds memory for a million files.
constexpr std::size_t kInputWindow = 16'384;

}  // namespace

void Tracker::finish(Results& results) {
  take_hash_results();
  reconcile_names();
  mark_origins();
  reconcile_links();
  finish_hashing();
  reapply_filter();
  const std::vector<PathId> order = paths_in_order();
  report_inputs(order, results);
  report_outputs(order, results);
  report_left_out(order, results);
  report_facts(results);
  processes_.for_each([&](store::ProcessRecord process) { results.process(std::move(process)); });
  for (auto& missed : missed_.list()) results.missed(std::move(missed));
}

void Tracker::reconcile_names() {
  const PathId end = paths_.end();
  for (PathId id = 1; id < end; ++id) {
    if ((paths_[id].flags & path_flag::kNamed) != 0) reconcile_name(id);
  }
}

// Corrects for calls that were reported and then failed, and for what other programs did.
void Tracker::reconcile_name(PathId id) {
  const auto [real, inaccessible] = status_at(paths_.text(id));
  const FileId now = paths_[id].now;
  if (inaccessible) return;  // only the events are known
  if (!real) return unbind(id);
  if (now != 0 && (files_[now].inode == 0 || files_.is(now, *real))) return;
  const FileId known = files_.find(real->device, real->inode);
  if (known != 0 && (known == paths_[id].before || files_[known].is_alive())) {
    unbind(id);
    bind(id, known);
  } else if (now != 0) {
    files_.identify(now, *real);  // replaced: the file that is there now is what the run left
  } else if (paths_[id].before != 0) {
    bind(id, files_.add(&*real, 0));
  }
}

// Renamed and linked files count as read at their origin, unless the run had written them there.
void Tracker::mark_origins() {
  for (PathId id = 1; id < paths_.end(); ++id) {
    const Path& path = paths_[id];
    if (path.now == 0 || path.now == path.before || path.from == 0) continue;
    Path& from = paths_[path.from];
    File& moved = files_[path.now];
    if (!moved.has(file::kPreexisting) || from.before != path.now) continue;
    if (from.now != path.now) from.flags |= path_flag::kMovedAway;
    if (moved.has(file::kWritten) && !moved.has(file::kWanted)) {
      const auto real = status_at(paths_.text(id)).stamp;
      if (!real || !is_unchanged(path.now, *real)) continue;
      moved.flags = static_cast<std::uint16_t>(moved.flags & ~file::kWritten);
    }
    from.flags |= path_flag::kRead;
    if (kept(path.from)) moved.flags |= file::kWanted;
  }
}

// The run may have created a virtual environment after files in it were classified.
void Tracker::reapply_filter() {
  filter_.forget();
  for (FolderId folder = 1; folder < paths_.folder_end(); ++folder) {
    const std::string& text = paths_.folder_path(folder);
    const RuleId rule = filter_.rule_for_folder(text);
    if (paths_.folder_rule(folder) == rule) continue;
    paths_.folder_rule(folder) = rule;
    for (PathId id = paths_.first_in(folder); id != 0; id = paths_[id].next_in_folder) {
      paths_[id].rule = filter_.rule_for_name(rule, text, paths_.name(id));
    }
  }
}

std::vector<PathId> Tracker::paths_in_order() const {
  std::vector<PathId> order;
  order.reserve(paths_.end());
  for (PathId id = 1; id < paths_.end(); ++id) order.push_back(id);
  std::ranges::sort(order, [this](PathId a, PathId b) { return paths_.less(a, b); });
  return order;
}

void Tracker::report_inputs(const std::vector<PathId>& order, Results& results) {
  for (std::size_t at = 0; at < order.size(); at += kInputWindow) {
    const auto window = std::span(order).subspan(at, std::min(kInputWindow, order.size() - at));
    const std::vector<PathStatus> now = statuses_of(window.size(), [&](std::size_t i) {
      const Path& path = paths_[window[i]];
      const bool needed = is_input(window[i]) && path.now == path.before &&
                          !files_[path.before].has(file::kWritten | file::kGivenUp);
      return needed ? place_of(window[i]) : PlaceOfFile();
    });
    for (std::size_t i = 0; i < window.size(); ++i) {
      if (is_input(window[i])) report_input(window[i], now[i], results);
    }
  }
}

PlaceOfFile Tracker::place_of(PathId id) const {
  return {&paths_.folder_path(paths_[id].folder), paths_.name_text(id)};
}

bool Tracker::is_input(PathId id) const {
  const Path& path = paths_[id];
  return (path.flags & path_flag::kRead) != 0 && path.before != 0 && kept(id);
}

// `now` is what is at the path if the file is still expected there, unchanged.
void Tracker::report_input(PathId id, const PathStatus& now, Results& results) {
  const Path& path = paths_[id];
  const FileId before = path.before;
  const File& file = files_[before];
  store::Input input{.path = paths_.text(id), .size = file.size};
  if (file.digest != 0) {
    input.blake3 = files_.digest(before);
  } else if (!file.has(file::kGivenUp)) {
    give_up(before, "gone", input.path + " was gone before it could be hashed");
  }
  if (!file.has(file::kWritten | file::kGivenUp) && path.now == before) {
    const bool same = now.stamp && same_content(*now.stamp, files_.stamp(before));
    if (!same && !now.inaccessible) check_changed_input({id, before}, now.stamp);
  }
  results.input(std::move(input), filter_.rule(path.rule));
}

}  // namespace assay::lineage
