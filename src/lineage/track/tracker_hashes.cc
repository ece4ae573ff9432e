// Pre-images: the content of files as they were before the run changed them. Whatever was read is
// hashed by the queue as soon as there is time, and at once when the run is about to change it.
#include <fcntl.h>
#include <fmt/format.h>

#include "base/units.h"
#include "lineage/track/stamp.h"
#include "lineage/track/tracker.h"

namespace assay::lineage {

namespace file = file_flag;

// What the threads have finished makes room for what waits.
void Tracker::take_digests() {
  if (!queue_.has_results()) return;
  taken_.clear();
  queue_.take(taken_);
  for (const HashResult& result : taken_) take_result(result);
  taken_.clear();
  refill();
}

void Tracker::want(FileId id, PathId path) {
  File& file = files_[id];
  file.flags |= file::kWanted;
  if (file.digest != 0 || file.has(file::kQueued | file::kGivenUp)) return;
  // If nothing leads to it any more, hash_the_rest() says so.
  if (paths_[path].now != id) return;
  file.flags |= file::kQueued;
  if (queue_.pending() < options_.most_pending) {
    queue_.submit(task_for(id, path));
  } else {
    backlog_.push_back(id);
  }
}

void Tracker::refill() {
  while (!backlog_.empty() && queue_.pending() < options_.most_pending) {
    const FileId id = backlog_.back();
    backlog_.pop_back();
    File& file = files_[id];
    const bool open = file.has(file::kForeign) && file.digest == 0 && !file.has(file::kGivenUp);
    if (open && paths_[file.name].now == id) {
      queue_.submit(task_for(id, file.name));
    } else {
      file.flags = static_cast<std::uint16_t>(file.flags & ~file::kQueued);
    }
  }
}

void Tracker::want_now(FileId id, PathId path) {
  File& file = files_[id];
  file.flags |= file::kWanted;
  if (file.digest != 0 || file.has(file::kGivenUp)) return;
  if (file.size > options_.pre_image_limit) {
    return give_up(id, "pre-image",
                   fmt::format("{} ({} bytes) was changed before it could be hashed",
                               paths_.text(path), file.size));
  }
  // Without a name it can be reached through the descriptor alone that the queue holds.
  if (paths_[path].now != id) return wait_for(id);
  take_result(queue_.hash_now(task_for(id, path)));
}

void Tracker::wait_for(FileId id) {
  std::vector<HashResult> results;
  while (files_[id].digest == 0 && !files_[id].has(file::kGivenUp) && queue_.wait(results)) {
    for (const HashResult& result : results) take_result(result);
    results.clear();
  }
}

// What the run is about to write into and has not read. It is no input, so nothing is lacking if
// this fails; but it may be read yet, and the output should say what it grew from.
void Tracker::note_before(FileId id, PathId path) {
  const File& file = files_[id];
  if (file.digest != 0 || file.has(file::kGivenUp) || file.size > options_.unread_limit) return;
  if (paths_[path].now != id) return;
  const HashResult result = queue_.hash_now(task_for(id, path));
  if (result.state == HashResult::State::kDone) files_.set_digest(id, result.digest);
}

// The file is about to lose a name, and may have no other.
void Tracker::hold(FileId id, PathId path) {
  HashTask task = task_for(id, path);
  if (queue_.held() >= most_held_) return take_result(queue_.hash_now(std::move(task)));
  const std::string text = paths_.text(path);
  task.fd.reset(::open(text.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC));
  // Where it cannot be opened, hashing it says why.
  if (!task.fd.valid()) return take_result(queue_.hash_now(std::move(task)));
  files_[id].flags |= file::kQueued;
  queue_.submit(std::move(task));
}

HashTask Tracker::task_for(FileId id, PathId path) const {
  HashTask task;
  task.id = id;
  task.folder = &paths_.folder_path(paths_[path].folder);
  task.name = paths_.name_text(path);
  task.expected = to_hash(files_.stamp(id));
  return task;
}

void Tracker::take_result(const HashResult& result) {
  File& file = files_[result.id];
  file.flags = static_cast<std::uint16_t>(file.flags & ~file::kQueued);
  if (file.digest != 0 || file.has(file::kGivenUp) || !file.has(file::kForeign)) return;
  switch (result.state) {
    case HashResult::State::kDone:
      return files_.set_digest(result.id, result.digest);
    case HashResult::State::kChanged:
      if (file.has(file::kWritten)) {
        return give_up(result.id, "pre-image",
                       fmt::format("{} was changed by the run before it could be hashed",
                                   paths_.text(file.name)));
      }
      file.flags |= file::kGivenUp;
      return doubt({file.name, result.id}, standing_at(paths_.text(file.name)).stamp);
    case HashResult::State::kUnreadable:
      return give_up(result.id, "unreadable",
                     fmt::format("{}: {}", paths_.text(file.name), *result.error));
    case HashResult::State::kGone:
      return;  // it has been moved; at the end we know where
  }
}

void Tracker::give_up(FileId id, std::string what, std::string text) {
  files_[id].flags |= file::kGivenUp;
  missed_.add(std::move(what), std::move(text));
}

// A file whose last name was taken away may have others.
void Tracker::name_all_files() {
  for (PathId path = 1; path < paths_.end(); ++path) {
    const FileId id = paths_[path].now;
    if (id != 0 && paths_[files_[id].name].now != id) files_[id].name = path;
  }
}

void Tracker::hash_the_rest() {
  queue_.raise();
  name_all_files();
  // Twice: a file that was not found at the first try may have another name by then.
  for (int round = 0; round < 2; ++round) {
    for (FileId id = 1; id < files_.end(); ++id) {
      const File& file = files_[id];
      if (file.has(file::kWanted) && file.has(file::kForeign)) want(id, file.name);
    }
    do {
      for (const HashResult& result : taken_) take_result(result);
      taken_.clear();
      refill();
    } while (queue_.wait(taken_));
  }
}

}  // namespace assay::lineage
