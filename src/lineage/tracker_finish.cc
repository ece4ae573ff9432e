// The end of a job: names are compared with the file system, which has the last word; what is still
// to be hashed is hashed with all processors; results are told in the order of their paths.
//
// A window of outputs is hashed at a time, so that digests of a million files need not be kept.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "lineage/stamp.h"
#include "lineage/tracker.h"

namespace assay::lineage {

using store::OutputStatus;
using wire::Stamp;
namespace file = file_flag;

namespace {

constexpr std::size_t kWindow = 4096;

const Rule kUnchanged{"unchanged", false, "the job opened it for writing and did not change it"};
const Rule kTemporary{"gone", false, "the job made it and removed it"};

// What stands at a path: a regular file with its stamp, none, or something that we may not see.
struct Standing {
  std::optional<Stamp> stamp;
  bool hidden = false;
};

Standing standing_at(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return {.hidden = errno != ENOENT && errno != ENOTDIR};
  if (!S_ISREG(status.st_mode)) return {};
  return {.stamp = to_wire(stamp_of(status))};
}

}  // namespace

struct Tracker::Changed {
  PathId path = 0;
  PathId from = 0;
  OutputStatus status = OutputStatus::kCreated;
  Stamp stamp;
  std::optional<hash::Digest> digest;
};

void Tracker::finish(Results& results) {
  take_digests();
  settle_names();
  mark_origins();
  hash_the_rest();
  judge_again();
  const std::vector<PathId> order = in_order();
  tell_inputs(order, results);
  tell_outputs(order, results);
  tell_left_out(order, results);
  processes_.for_each([&](store::Process process) { results.process(std::move(process)); });
  for (auto& missed : missed_.list()) results.missed(std::move(missed));
}

void Tracker::settle_names() {
  const PathId end = paths_.end();
  for (PathId id = 1; id < end; ++id) {
    if ((paths_[id].flags & path_flag::kNamed) != 0) settle_name(id);
  }
}

// Calls that were told and then failed, and what other programs did.
void Tracker::settle_name(PathId id) {
  const auto [real, hidden] = standing_at(paths_.text(id));
  const FileId now = paths_[id].now;
  if (hidden) return;  // then what was told is all we know
  if (!real) return unbind(id);
  if (now != 0 && (files_[now].inode == 0 || files_.is(now, *real))) return;
  const FileId known = files_.find(real->device, real->inode);
  if (known != 0 && (known == paths_[id].before || files_[known].is_alive())) {
    unbind(id);
    bind(id, known);
  } else if (now != 0) {
    files_.identify(now, *real);  // replaced by someone; what is there is what the job left
  } else if (paths_[id].before != 0) {
    bind(id, files_.add(&*real, 0));
  }
}

// What was renamed or linked counts as read where it came from, unless the job had put its own
// content there.
void Tracker::mark_origins() {
  for (PathId id = 1; id < paths_.end(); ++id) {
    const Path& path = paths_[id];
    if (path.now == 0 || path.now == path.before || path.from == 0) continue;
    Path& from = paths_[path.from];
    File& moved = files_[path.now];
    if (!moved.has(file::kForeign) || from.before != path.now) continue;
    if (from.now != path.now) from.flags |= path_flag::kCarried;
    if (moved.has(file::kWritten) && !moved.has(file::kWanted)) {
      const auto real = standing_at(paths_.text(id)).stamp;
      if (!real || !is_unchanged(path.now, *real)) continue;
      moved.flags = static_cast<std::uint16_t>(moved.flags & ~file::kWritten);
    }
    from.flags |= path_flag::kRead;
    if (kept(path.from)) moved.flags |= file::kWanted;
  }
}

// An environment may have been made by the job itself, after files in it were judged.
void Tracker::judge_again() {
  filter_.forget();
  for (FolderId folder = 1; folder < paths_.folder_end(); ++folder) {
    const std::string& text = paths_.folder_path(folder);
    const RuleId rule = filter_.judge_folder(text);
    if (paths_.verdict(folder) == rule) continue;
    paths_.verdict(folder) = rule;
    for (PathId id = paths_.first_in(folder); id != 0; id = paths_[id].next_in_folder) {
      paths_[id].rule = filter_.judge_name(rule, text, paths_.name(id));
    }
  }
}

std::vector<PathId> Tracker::in_order() const {
  std::vector<PathId> order;
  order.reserve(paths_.end());
  for (PathId id = 1; id < paths_.end(); ++id) order.push_back(id);
  std::ranges::sort(order, [this](PathId a, PathId b) { return paths_.less(a, b); });
  return order;
}

void Tracker::tell_inputs(const std::vector<PathId>& order, Results& results) {
  for (const PathId id : order) {
    const Path& path = paths_[id];
    const FileId before = path.before;
    if ((path.flags & path_flag::kRead) == 0 || before == 0 || !kept(id)) continue;
    const File& file = files_[before];
    store::Input input{.path = paths_.text(id), .size = file.size};
    if (file.digest != 0) {
      input.blake3 = files_.digest(before);
    } else if (!file.has(file::kGivenUp)) {
      give_up(before, "gone", input.path + " was gone before it could be hashed");
    }
    if (!file.has(file::kWritten | file::kGivenUp) && path.now == before) {
      const auto [real, hidden] = standing_at(input.path);
      const bool same = real && same_content(*real, files_.stamp(before));
      if (!same && !hidden) changed_outside(before);
    }
    results.input(std::move(input), filter_.rule(path.rule));
  }
}

// What is other at this path than before the job.
std::optional<Tracker::Changed> Tracker::change_at(PathId id) {
  const Path& path = paths_[id];
  Changed changed{.path = id};
  const bool carried = (path.flags & path_flag::kCarried) != 0;
  if (path.now == 0) {
    if (path.before == 0 || carried) return std::nullopt;
    changed.status = OutputStatus::kDeleted;
    return changed;
  }
  const File& file = files_[path.now];
  const bool same_file = path.now == path.before;
  if (same_file && !file.has(file::kWritten)) return std::nullopt;
  auto [real, hidden] = standing_at(paths_.text(id));
  // Hashing it will fail, and say why.
  if (hidden) real = files_.stamp(path.now);
  if (!real) {
    if (path.before == 0) return std::nullopt;
    missed_.add("gone", fmt::format("{} was removed by another program", paths_.text(id)));
    changed.status = OutputStatus::kDeleted;
    return changed;
  }
  changed.stamp = *real;
  if (same_file) {
    const bool unchanged = !hidden && is_unchanged(path.now, *real);
    if (unchanged && !file.has(file::kInherited)) return std::nullopt;
    changed.status =
        file.has(file::kInheritedEmpty) ? OutputStatus::kCreated : OutputStatus::kModified;
    return changed;
  }
  const bool linked = path.from != 0 && paths_[path.from].now == path.now;
  if (file.has(file::kForeign)) {
    if (path.from == 0) {
      changed_outside(path.now);
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

void Tracker::tell_outputs(const std::vector<PathId>& order, Results& results) {
  std::vector<Changed> window;
  for (std::size_t at = 0; at < order.size();) {
    window.clear();
    for (; at < order.size() && window.size() < kWindow; ++at) {
      if (!kept(order[at])) continue;
      if (auto changed = change_at(order[at])) window.push_back(*changed);
    }
    hash_outputs(window);
    for (const Changed& changed : window) {
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

// What the job wrote into, where it left some of it.
std::optional<hash::Digest> Tracker::before_of(const Changed& changed) const {
  const FileId id = paths_[changed.path].now;
  if (id == 0 || changed.status == OutputStatus::kDeleted) return std::nullopt;
  const File& file = files_[id];
  const bool into = file.has(file::kForeign) && file.has(file::kWritten);
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
        missed_.add("changed", fmt::format("{} was still being changed when the job had ended",
                                           paths_.text(changed.path)));
      }
    }
    taken_.clear();
  }
}

// Why nothing was told of this path; nullptr where there is nothing to be said.
const Rule* Tracker::reason_left_out(PathId id) const {
  const Path& path = paths_[id];
  const bool made = path.now == 0 && path.before == 0;
  const bool opened = path.now != 0 && files_[path.now].has(file::kWritten);
  const bool touched =
      made || opened || path.now != path.before || (path.flags & path_flag::kRead) != 0;
  if (!touched) return nullptr;
  if (!kept(id)) return &filter_.rule(path.rule);
  if (made) return &kTemporary;
  return opened && path.now == path.before ? &kUnchanged : nullptr;
}

void Tracker::tell_left_out(const std::vector<PathId>& order, Results& results) {
  for (const PathId id : order) {
    const Path& path = paths_[id];
    if ((path.flags & path_flag::kTaken) == 0) continue;
    const Rule* const rule = reason_left_out(id);
    if (rule == nullptr) continue;
    if (rule == &kUnchanged) {
      // Whether it is an output has been decided before; here it is asked again for the few files
      // that were opened for writing.
      if (change_at(id)) continue;
    }
    const bool read = (path.flags & path_flag::kRead) != 0;
    const bool changed = rule != &kUnchanged && (path.now != path.before || path.now == 0 ||
                                                 files_[path.now].has(file::kWritten));
    results.left_out({.path = paths_.text(id), .read = read, .changed = changed}, *rule);
  }
}

}  // namespace assay::lineage
