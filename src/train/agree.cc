#include "train/agree.h"

namespace assay::train {

base::Result<std::int64_t> told_by_first(comm::Communicator& ranks, std::int64_t value) {
  ASSAY_TRY_VOID(ranks.broadcast(&value, sizeof value, comm::Dtype::kU8, 0));
  return value;
}

base::Result<bool> on_any(comm::Communicator& ranks, bool so) {
  std::uint8_t flag = so ? 1 : 0;
  ASSAY_TRY_VOID(ranks.all_reduce(&flag, &flag, 1, comm::Dtype::kU8, comm::Reduction::kMax));
  return flag != 0;
}

}  // namespace assay::train
