// HashTask: one file to be hashed in a known state, and the result; TaskList: a queue of them.
//
// There is a digest only if the file was in the expected state before and after hashing. It is
// cacheable only if the file was also not "racily new": file times advance in ticks, so a file that
// changed within the tick in which it was hashed may change again and keep its stamp. Such a digest
// is valid for this run, because the run's own changes are announced before they happen, but not
// for later runs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "hash/digest.h"
#include "hash/file.h"
#include "hash/small_files.h"
#include "lineage/track/folder_handle.h"

namespace assay::lineage {

struct HashTask {
  std::uint32_t id = 0;  // chosen by the owner of the queue
  // The path in two pieces, which must outlive the task.
  const std::string* folder = nullptr;
  const char* name = nullptr;
  base::UniqueFd fd;  // if valid, this is hashed, and the path is for messages
  hash::FileStamp expected;
};

struct HashResult {
  enum class State : std::uint8_t {
    kDone,
    kChanged,     // the file is not, or did not stay, as expected
    kGone,        // nothing or another file is at the path
    kUnreadable,  // see `error`
  };
  std::uint32_t id = 0;
  State state = State::kUnreadable;
  bool cacheable = false;
  hash::Digest digest;
  hash::FileStamp stamp;  // at the time of hashing
  std::unique_ptr<std::string> error;
};

// The change time may differ from the expected one: renaming, linking and chmod change it, and the
// run may do those to a file it has read. The digest is then not cacheable.
HashResult hash_task(const HashTask& task, const hash::HashOptions& options);

// Tasks that a thread does one after the other: files in one folder share its descriptor, and small
// ones are hashed together when all have been read.
class TaskBatch {
 public:
  // Appends the task's result. That of a small file is final but for its digest.
  const HashResult& add(const HashTask& task, const hash::HashOptions& options);
  void drop_last();
  // All results, with their digests. The next add() begins a new batch.
  std::vector<HashResult> take();

 private:
  HashResult hash_open(int fd, const std::string& where, HashResult result,
                       const hash::FileStamp& expected, const hash::HashOptions& options);
  void hash_small();

  FolderHandle folder_;
  hash::SmallFiles small_;
  // The results of the files in `small_`; kDropped: not wanted.
  static constexpr std::size_t kDropped = ~std::size_t{0};
  std::vector<std::size_t> small_results_;
  std::vector<HashResult> results_;
};

// Whether a file with this stamp may change after `now_ns` (wall clock) without a new stamp.
bool racily_new(const hash::FileStamp& stamp, std::int64_t now_ns);
// The clock that file times come from.
std::int64_t file_clock_ns();
// The clock of the file system that this folder is on, which may be a file server's: sets the
// folder's times to "now" and reads them back. file_clock_ns() if that is not possible.
std::int64_t file_system_clock_ns(const std::string& folder);
// A queue of tasks whose pop_front() frees no memory; the owner frees emptied blocks later. A
// thread of idle priority that frees memory could be descheduled for long while it holds the
// allocator's lock, and so block the thread that the command waits for.
class TaskList {
 public:
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] const HashTask& front() const { return first_->tasks[first_->begin]; }

  void push_back(HashTask task) {
    if (first_ == nullptr) {
      first_ = std::make_unique<Block>();
      last_ = first_.get();
    } else if (last_->end == kPerBlock) {
      last_->next = std::make_unique<Block>();
      last_ = last_->next.get();
    }
    last_->tasks[last_->end++] = std::move(task);
    ++size_;
  }

  void push_front(HashTask task) {
    if (first_ == nullptr) return push_back(std::move(task));
    if (first_->begin == 0) {
      auto block = std::make_unique<Block>();
      block->begin = block->end = kPerBlock;
      block->next = std::move(first_);
      first_ = std::move(block);
    }
    first_->tasks[--first_->begin] = std::move(task);
    ++size_;
  }

  HashTask pop_front() {
    HashTask task = std::move(first_->tasks[first_->begin++]);
    --size_;
    if (first_->begin == first_->end && first_->next != nullptr) {
      std::unique_ptr<Block> block = std::move(first_);
      first_ = std::move(block->next);
      block->next = std::move(spent_);
      spent_ = std::move(block);
    } else if (first_->begin == first_->end) {
      first_->begin = first_->end = 0;
    }
    return task;
  }

  void free_spent() {
    while (spent_ != nullptr) spent_ = std::exchange(spent_->next, nullptr);
  }

  TaskList() = default;
  TaskList(const TaskList&) = delete;
  TaskList& operator=(const TaskList&) = delete;
  ~TaskList() {
    free_spent();
    while (first_ != nullptr) first_ = std::exchange(first_->next, nullptr);
  }

 private:
  static constexpr std::size_t kPerBlock = 64;
  struct Block {
    std::array<HashTask, kPerBlock> tasks;
    std::size_t begin = 0;
    std::size_t end = 0;
    std::unique_ptr<Block> next;
  };

  std::unique_ptr<Block> first_;
  Block* last_ = nullptr;
  std::unique_ptr<Block> spent_;
  std::size_t size_ = 0;
};

}  // namespace assay::lineage
