// Device: what every kernel is given: threads, and a place to say what it has done. A kernel tells
// of itself from the memory it was handed, so the log is of what was executed, not of what was
// asked.
#pragma once

#include <vector>

#include "train/backend.h"
#include "train/cpu/matrix.h"
#include "train/threads.h"

namespace assay::train::cpu {

class Device : public Threads {
 public:
  using Threads::Threads;

  void log_to(ExecutedLog* log, const step::Op* op) {
    log_ = log;
    op_ = op;
  }
  // Operands that are not there are left out.
  void did(step::Kind kind, const std::vector<Shape>& in, const std::vector<Shape>& out) {
    if (log_ == nullptr) return;
    Executed executed{.op = op_, .kind = kind};
    for (const Shape& shape : in) {
      if (shape.there) executed.in.push_back({shape.rows, shape.cols});
    }
    for (const Shape& shape : out) {
      if (shape.there) executed.out.push_back({shape.rows, shape.cols});
    }
    log_->push_back(std::move(executed));
  }

 private:
  ExecutedLog* log_ = nullptr;
  const step::Op* op_ = nullptr;
};

}  // namespace assay::train::cpu
