// What a rank's program asks NCCL for, as `assay run` counts it.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "observe/wire/gpu_region.h"
#include "step/program.h"

namespace assay::nccl_testing {

using wire::GpuOperation;

// Calls and bytes, by operation and type of NCCL.
struct Amount {
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
  bool operator==(const Amount&) const = default;
};
using Moved = std::map<std::pair<GpuOperation, unsigned>, Amount>;

inline std::string to_text(const Moved& moved) {
  std::string text;
  for (const auto& [what, amount] : moved) {
    text += fmt::format(" {} {}: {} calls, {} bytes;", wire::name_of(what.first),
                        wire::nccl_type_name(what.second), amount.calls, amount.bytes);
  }
  return text;
}

inline unsigned nccl_type(step::Dtype type) {
  constexpr unsigned kU8 = 1;
  constexpr unsigned kI32 = 2;
  constexpr unsigned kF32 = 7;
  constexpr unsigned kBf16 = 9;
  if (type == step::Dtype::kF32) return kF32;
  if (type == step::Dtype::kI32) return kI32;
  return step::bytes_of(type) == 1 ? kU8 : kBf16;
}

// What ops of a rank's program list, as NCCL counts it: a gather by what everybody gets, everything
// else by what goes to and comes from each of the others.
inline Moved listed(const step::Program& program, const std::vector<step::Op>& ops,
                    std::int64_t times) {
  Moved moved;
  for (const step::Op& op : ops) {
    const bool gather = op.kind == step::OpKind::kAllGather;
    const bool one_to_one = op.kind == step::OpKind::kSend || op.kind == step::OpKind::kReceive;
    if (!gather && !one_to_one && op.kind != step::OpKind::kAllToAll) continue;
    const step::View& view = op.in.empty() ? op.out[0] : op.in[0];
    const step::Dtype type = program.buffers[static_cast<std::size_t>(view.buffer)].type;
    const auto add = [&](GpuOperation operation, std::int64_t elements) {
      if (elements == 0) return;
      Amount& amount = moved[{operation, nccl_type(type)}];
      ++amount.calls;
      amount.bytes += static_cast<std::uint64_t>(elements * step::bytes_of(type));
    };
    if (one_to_one) {
      add(op.kind == step::OpKind::kSend ? GpuOperation::kSend : GpuOperation::kReceive,
          view.elements());
      continue;
    }
    const step::AxisPosition place = program.choices.layout.along(op.axis);
    const step::Unit* unit =
        op.unit < 0 ? nullptr : &program.units[static_cast<std::size_t>(op.unit)];
    const bool uneven = unit != nullptr && unit->whole_matrices;
    if (gather && !uneven) {
      add(GpuOperation::kAllGather, op.in[0].elements() * place.ranks);
      continue;
    }
    for (std::int64_t rank = 0; rank < place.ranks; ++rank) {
      if (rank == place.rank) continue;
      const std::int64_t own = uneven ? unit->part.count : op.out[0].cols;
      const std::int64_t theirs =
          uneven ? unit->parts[static_cast<std::size_t>(rank)].count : op.out[0].cols;
      add(GpuOperation::kSend, gather ? own : theirs);
      add(GpuOperation::kReceive, gather ? theirs : own);
    }
  }
  for (auto& [what, amount] : moved) {
    amount.calls *= static_cast<std::uint64_t>(times);
    amount.bytes *= static_cast<std::uint64_t>(times);
  }
  return moved;
}

// Of a run of so many steps, and of what comes before the first.
inline Moved listed(const step::Program& program, std::int64_t steps) {
  Moved moved = listed(program, program.ops, steps);
  for (const auto& [what, amount] : listed(program, program.prologue, 1)) {
    moved[what].calls += amount.calls;
    moved[what].bytes += amount.bytes;
  }
  return moved;
}

inline Moved difference(Moved after, const Moved& before) {
  for (const auto& [what, amount] : before) {
    after[what].calls -= amount.calls;
    after[what].bytes -= amount.bytes;
  }
  std::erase_if(after, [](const auto& row) { return row.second == Amount{}; });
  return after;
}

}  // namespace assay::nccl_testing
