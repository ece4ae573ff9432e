#include "train/executed.h"

#include <utility>

namespace assay::train {

void OpRecorder::executed(step::OpKind kind, const std::vector<OperandShape>& in,
                          const std::vector<OperandShape>& out) {
  if (log_ == nullptr) return;
  Executed entry{.op = op_, .kind = kind};
  for (const OperandShape& shape : in) {
    if (!shape.empty) entry.in.push_back({shape.rows, shape.cols});
  }
  for (const OperandShape& shape : out) {
    if (!shape.empty) entry.out.push_back({shape.rows, shape.cols});
  }
  log_->push_back(std::move(entry));
}

}  // namespace assay::train
