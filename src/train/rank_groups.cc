#include "train/rank_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"

namespace assay::train {
namespace {

using step::Axis;

comm::ElementType type_of(step::Dtype type) {
  switch (type) {
    case step::Dtype::kF32:
      return comm::ElementType::kF32;
    case step::Dtype::kI32:
      return comm::ElementType::kI32;
    case step::Dtype::kFp8:
      return comm::ElementType::kU8;
    case step::Dtype::kBf16:
    case step::Dtype::kU16:
    case step::Dtype::kFp16:
      break;
  }
  return comm::ElementType::kBf16;  // any two-byte type: elements are only copied
}

// The ranges of `in` sent to each rank, and the ranges of `out` received from each.
struct PartList {
  std::vector<std::int64_t> send_counts;
  std::vector<std::int64_t> send_offsets;
  std::vector<std::int64_t> receive_counts;
  std::vector<std::int64_t> receive_offsets;

  [[nodiscard]] comm::AllToAllParts parts() const {
    return {send_counts, send_offsets, receive_counts, receive_offsets};
  }
};

// Muon's matrices are assigned to ranks as a whole, so parts have different sizes.
PartList parts_of(const step::Unit& unit, const step::Op& op) {
  PartList list;
  const bool gather = op.kind == step::OpKind::kAllGather;
  for (std::size_t rank = 0; rank < unit.parts.size(); ++rank) {
    const step::Range& part = unit.parts[rank];
    list.send_counts.push_back(gather ? unit.part.count : part.count);
    list.send_offsets.push_back(gather ? 0 : part.first);
    list.receive_counts.push_back(gather ? part.count : unit.part.count);
    list.receive_offsets.push_back(gather ? part.first
                                          : static_cast<std::int64_t>(rank) * unit.part.count);
  }
  return list;
}

// Without expert parallelism, these are the same as other axes.
bool is_of_experts(Axis axis) {
  return axis == Axis::kExpert || axis == Axis::kExpertData || axis == Axis::kExpertShard;
}

// Nothing if a count is negative, or if their sum exceeds the room.
std::optional<std::int64_t> sum_within(const std::vector<std::int64_t>& counts, std::int64_t room) {
  std::int64_t sum = 0;
  for (const std::int64_t count : counts) {
    if (count < 0 || count > room) return std::nullopt;
    sum += count;
  }
  return sum <= room ? std::optional(sum) : std::nullopt;
}

// Rows sorted by rank, `width` elements each.
PartList parts_of(const RowCounts& rows, std::int64_t width) {
  PartList list;
  const auto add = [&](const std::vector<std::int64_t>& from, std::vector<std::int64_t>& counts,
                       std::vector<std::int64_t>& offsets) {
    std::int64_t first = 0;
    for (const std::int64_t count : from) {
      counts.push_back(count * width);
      offsets.push_back(first);
      first += count * width;
    }
  };
  add(rows.sent, list.send_counts, list.send_offsets);
  add(rows.received, list.receive_counts, list.receive_offsets);
  return list;
}

}  // namespace

base::Result<std::unique_ptr<RankGroups>> RankGroups::make(comm::Communicator& world,
                                                           const step::Layout& layout) {
  ASSAY_CHECK(layout.ranks() == world.ranks() && layout.rank() == world.rank(),
              "the layout must be the communicator's");
  std::unique_ptr<RankGroups> groups(new RankGroups(world));
  for (const Axis axis :
       {Axis::kData, Axis::kShard, Axis::kReplica, Axis::kTensor, Axis::kContext, Axis::kExpert,
        Axis::kExpertData, Axis::kExpertShard, Axis::kPipeline, Axis::kPipelineBack}) {
    // The same decision on all ranks: whether an axis spans the whole world, or is trivial.
    const step::AxisPosition place = layout.along(axis);
    if (place.ranks == 1 || (is_of_experts(axis) && !layout.spreads_experts())) continue;
    const std::vector<std::int64_t> members = layout.members(axis);
    const bool is_world = place.ranks == world.ranks() && std::ranges::is_sorted(members);
    if (!is_world || axis == Axis::kPipelineBack) {
      const int color = static_cast<int>(std::ranges::min(members));
      ASSAY_TRY(groups->groups_[axis], world.split(color, static_cast<int>(place.rank)));
    }
    if (axis == Axis::kPipeline || axis == Axis::kPipelineBack) {
      ASSAY_TRY_VOID(groups->along(axis).connect_neighbours());
    }
  }
  return groups;
}

comm::Communicator& RankGroups::along(step::Axis axis) const {
  const auto found = groups_.find(axis);
  return found == groups_.end() ? *world_ : *found->second;
}

base::Result<void> RankGroups::issue(const step::Program& program, const step::Op& op,
                                     const std::byte* in, std::byte* out, comm::Stream stream) {
  if (stream.handle != nullptr) on_device_ = true;
  comm::Communicator& ranks = along(op.axis);
  const step::View& some = op.in.empty() ? op.out[0] : op.in[0];
  comm::Call call{.type = type_of(program.buffers[static_cast<std::size_t>(some.buffer)].type)};
  if (op.kind == step::OpKind::kSend || op.kind == step::OpKind::kReceive) {
    call.kind = op.kind == step::OpKind::kSend ? comm::CommKind::kSend : comm::CommKind::kReceive;
    call.count = some.elements();
    call.peer = op.peer;
    ASSAY_TRY(open_[op.ticket], ranks.issue(call, in, out, stream));
    return {};
  }
  const step::View& from = op.in[0];
  const step::View& to = op.out[0];
  const step::Unit* unit =
      op.unit < 0 ? nullptr : &program.units[static_cast<std::size_t>(op.unit)];
  if (unit != nullptr && unit->whole_matrices) {
    call.kind = comm::CommKind::kAllToAllV;
    const PartList list = parts_of(*unit, op);
    ASSAY_TRY(open_[op.ticket], ranks.issue(call, in, out, stream, list.parts()));
    return {};
  }
  call.kind =
      op.kind == step::OpKind::kAllGather ? comm::CommKind::kAllGather : comm::CommKind::kAllToAll;
  call.count = op.kind == step::OpKind::kAllGather ? from.elements() : to.cols;
  ASSAY_TRY(open_[op.ticket], ranks.issue(call, in, out, stream));
  return {};
}

base::Result<void> RankGroups::issue_rows(const step::Program& program, const step::Op& op,
                                          const RowCounts& rows, const std::byte* in,
                                          std::byte* out, comm::Stream stream) {
  if (stream.handle != nullptr) on_device_ = true;
  const step::View& from = op.in[0];
  const step::View& to = op.out[0];
  ASSAY_CHECK(from.cols == from.stride && to.cols == to.stride, "rows must have no gaps");
  // After a failed exchange of counts on a device, they may be arbitrary.
  const std::optional<std::int64_t> sent = sum_within(rows.sent, from.rows);
  const std::optional<std::int64_t> received = sum_within(rows.received, to.rows);
  if (!sent || !received) {
    return base::fail(
        base::failed_error(fmt::format("rank {}", world_->rank()),
                           "the counts of experts' rows are wrong: an exchange before has failed"));
  }
  const step::Buffer& buffer = program.buffers[static_cast<std::size_t>(from.buffer)];
  const comm::Call call{.kind = comm::CommKind::kAllToAllV, .type = type_of(buffer.type)};
  const PartList list = parts_of(rows, from.cols);
  ASSAY_TRY(open_[op.ticket], along(op.axis).issue(call, in, out, stream, list.parts()));
  const std::int64_t row_bytes = from.cols * step::bytes_of(buffer.type);
  moved_.sent_bytes += *sent * row_bytes;
  moved_.received_bytes += *received * row_bytes;
  return {};
}

base::Result<void> RankGroups::check() const {
  ASSAY_TRY_VOID(world_->check());
  for (const auto& [axis, group] : groups_) ASSAY_TRY_VOID(group->check());
  return {};
}

base::Result<void> RankGroups::wait(const step::Op& op) {
  const auto found = open_.find(op.ticket);
  ASSAY_CHECK(found != open_.end(), "only what was issued can be waited for");
  const comm::Ticket ticket = found->second;
  open_.erase(found);
  const std::int64_t from_ns = base::system_clock().monotonic_ns();
  auto done = along(op.axis).wait(ticket);
  if (!on_device_) {
    add_waited_s(static_cast<double>(base::system_clock().monotonic_ns() - from_ns) / 1e9);
  }
  return done;
}

}  // namespace assay::train
