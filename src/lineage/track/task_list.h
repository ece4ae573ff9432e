// TaskList: a queue of hash tasks whose pop_front() frees no memory; the owner frees emptied blocks
// later. A thread of idle priority that frees memory could be descheduled for long while it holds
// the allocator's lock, and so block the thread that the command waits for.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <utility>

#include "lineage/track/hash_task.h"

namespace assay::lineage {

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
