// Layout: a rank's place among the job's ranks. A program is one rank's; other ranks appear in it
// through collectives only.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "spec/layout.h"

namespace assay::step {

// A rank among those along one axis of the layout.
struct Place {
  std::int64_t rank = 0;
  std::int64_t ranks = 1;
};

// The kinds of parallelism; a collective is among the ranks of one.
enum class Axis : std::uint8_t { kNone, kData, kTensor, kContext, kExpert, kPipeline };

std::string_view to_text(Axis axis);

struct Layout {
  // Ranks with the same weights and tokens of their own. Each updates a range of every group, and
  // keeps the optimizer's state of that range alone (ZeRO 1).
  Place data;

  [[nodiscard]] Place along(Axis axis) const { return axis == Axis::kData ? data : Place{}; }
};

// Elements [first, first + count) of something.
struct Range {
  std::int64_t first = 0;
  std::int64_t count = 0;

  [[nodiscard]] std::int64_t end() const { return first + count; }
  [[nodiscard]] Range common(const Range& other) const;
  bool operator==(const Range&) const = default;
};

// Layouts that the trainer cannot execute are refused, naming the key.
base::Result<Layout> layout_of(const spec::LayoutSpec& spec, std::int64_t rank);

}  // namespace assay::step
