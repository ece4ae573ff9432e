// Pre-images: the content of files before the run changed them. Files that were read are hashed by
// the queue when there is time, and immediately when the run is about to change them.
#include <fcntl.h>
#include <fmt/format.h>

#include "base/units.h"
#include "lineage/track/stamp.h"
#include "lineage/track/tracker.h"

namespace assay::lineage {

namespace file = file_flag;

void Tracker::take_hash_results() {
  if (!queue_.has_results()) return;
  taken_.clear();
  queue_.take(taken_);
  for (const HashResult& result : taken_) apply_hash_result(result);
  taken_.clear();
  submit_backlog();
}

void Tracker::request_hash(FileId id, PathId path) {
  File& file = files_[id];
  file.flags |= file::kWanted;
  if (file.digest != 0 || file.has(file::kQueued | file::kGivenUp)) return;
  // If it has lost its name, finish_hashing() reports that.
  if (paths_[path].now != id) return;
  file.flags |= file::kQueued;
  if (queue_.pending() < options_.max_pending) {
    queue_.submit(task_for(id, path));
  } else {
    backlog_.push_back(id);
  }
}

void Tracker::submit_backlog() {
  while (!backlog_.empty() && queue_.pending() < options_.max_pending) {
    const FileId id = backlog_.back();
    backlog_.pop_back();
    File& file = files_[id];
    const bool open = file.has(file::kPreexisting) && file.digest == 0 && !file.has(file::kGivenUp);
    if (open && paths_[file.name].now == id) {
      queue_.submit(task_for(id, file.name));
    } else {
      file.flags = static_cast<std::uint16_t>(file.flags & ~file::kQueued);
    }
  }
}

void Tracker::hash_now(FileId id, PathId path) {
  File& file = files_[id];
  file.flags |= file::kWanted;
  if (file.digest != 0 || file.has(file::kGivenUp)) return;
  if (file.size > options_.pre_image_limit) {
    return give_up(id, "pre-image",
                   fmt::format("{} ({} bytes) was changed before it could be hashed",
                               paths_.text(path), file.size));
  }
  // Without a name it can only be read through the descriptor that the queue holds.
  if (paths_[path].now != id) return wait_for_hash(id);
  apply_hash_result(queue_.hash_now(task_for(id, path)));
}

void Tracker::wait_for_hash(FileId id) {
  std::vector<HashResult> results;
  while (files_[id].digest == 0 && !files_[id].has(file::kGivenUp) && queue_.wait(results)) {
    for (const HashResult& result : results) apply_hash_result(result);
    results.clear();
  }
}

// For a file that the run is about to modify and has not read. It is not an input, so a failure is
// not reported; but it may still be read, and the output records its content before the run.
void Tracker::hash_before_write(FileId id, PathId path) {
  const File& file = files_[id];
  if (file.digest != 0 || file.has(file::kGivenUp) || file.size > options_.unread_limit) return;
  if (paths_[path].now != id) return;
  const HashResult result = queue_.hash_now(task_for(id, path));
  if (result.state == HashResult::State::kDone) files_.set_digest(id, result.digest);
}

// The file is about to lose a name, and may have no other.
void Tracker::hash_before_unlink(FileId id, PathId path) {
  HashTask task = task_for(id, path);
  if (queue_.held() >= max_open_files_) return apply_hash_result(queue_.hash_now(std::move(task)));
  const std::string text = paths_.text(path);
  task.fd.reset(::open(text.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC));
  // If it cannot be opened, hashing reports why.
  if (!task.fd.valid()) return apply_hash_result(queue_.hash_now(std::move(task)));
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

void Tracker::apply_hash_result(const HashResult& result) {
  File& file = files_[result.id];
  file.flags = static_cast<std::uint16_t>(file.flags & ~file::kQueued);
  if (file.digest != 0 || file.has(file::kGivenUp) || !file.has(file::kPreexisting)) return;
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
      return check_changed_input({file.name, result.id}, status_at(paths_.text(file.name)).stamp);
    case HashResult::State::kUnreadable:
      return give_up(result.id, "unreadable",
                     fmt::format("{}: {}", paths_.text(file.name), *result.error));
    case HashResult::State::kGone:
      return;  // moved; its path is known at the end
  }
}

void Tracker::give_up(FileId id, std::string what, std::string text) {
  files_[id].flags |= file::kGivenUp;
  missed_.add(std::move(what), std::move(text));
}

// A file whose recorded name was removed may have others.
void Tracker::update_file_names() {
  for (PathId path = 1; path < paths_.end(); ++path) {
    const FileId id = paths_[path].now;
    if (id != 0 && paths_[files_[id].name].now != id) files_[id].name = path;
  }
}

void Tracker::finish_hashing() {
  queue_.raise();
  update_file_names();
  // Twice: a file that was not found at first may have another name by then.
  for (int round = 0; round < 2; ++round) {
    for (FileId id = 1; id < files_.end(); ++id) {
      const File& file = files_[id];
      if (file.has(file::kWanted) && file.has(file::kPreexisting)) request_hash(id, file.name);
    }
    do {
      for (const HashResult& result : taken_) apply_hash_result(result);
      taken_.clear();
      submit_backlog();
    } while (queue_.wait(taken_));
  }
}

}  // namespace assay::lineage
