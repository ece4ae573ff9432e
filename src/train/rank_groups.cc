#include "train/rank_groups.h"

#include <cstring>
#include <vector>

#include "base/check.h"

namespace assay::train {

base::Result<std::unique_ptr<RankGroups>> RankGroups::make(comm::Communicator& world,
                                                           const step::Layout& layout) {
  ASSAY_CHECK(layout.ranks() == world.ranks() && layout.rank() == world.rank(),
              "the layout must be the communicator's");
  return std::unique_ptr<RankGroups>(new RankGroups(world));
}

comm::Communicator& RankGroups::along(step::Axis axis) const {
  const auto found = groups_.find(axis);
  return found == groups_.end() ? *world_ : *found->second;
}

base::Result<void> RankGroups::issue(const step::Program& program, const step::Op& op,
                                     const std::byte* in, std::byte* out) {
  comm::Communicator& ranks = along(op.axis);
  const bool unequal =
      op.unit >= 0 && program.units[static_cast<std::size_t>(op.unit)].whole_matrices;
  if (!unequal) {
    if (op.kind == step::Kind::kAllGather) {
      return ranks.all_gather(in, out, op.in[0].cols, comm::Dtype::kF32);
    }
    return ranks.all_to_all(in, out, op.out[0].cols, comm::Dtype::kF32);
  }
  const step::Unit& unit = program.units[static_cast<std::size_t>(op.unit)];
  if (op.kind == step::Kind::kAllGather) {
    for (int rank = 0; rank < ranks.ranks(); ++rank) {
      const step::Range& part = unit.parts[static_cast<std::size_t>(rank)];
      ASSAY_TRY_VOID(ranks.broadcast(out + part.first * 4, part.count, comm::Dtype::kF32, rank));
    }
    return {};
  }
  std::vector<std::byte> all(static_cast<std::size_t>(unit.elements * 4 * ranks.ranks()));
  ASSAY_TRY_VOID(ranks.all_gather(in, all.data(), unit.elements, comm::Dtype::kF32));
  for (int rank = 0; rank < ranks.ranks(); ++rank) {
    std::memcpy(out + rank * unit.part.count * 4,
                all.data() + (rank * unit.elements + unit.part.first) * 4,
                static_cast<std::size_t>(unit.part.count * 4));
  }
  return {};
}

base::Result<void> RankGroups::wait(const step::Op&) {
  return {};
}

}  // namespace assay::train
