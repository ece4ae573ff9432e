// Layout: where among a job's ranks a program runs. A program is one rank's: what the others do is
// not in it, only what it does with them.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "spec/layout.h"

namespace assay::step {

// A rank among those along one way of cutting the job.
struct Place {
  std::int64_t rank = 0;
  std::int64_t ranks = 1;
};

// The ranks that a collective is among. Every way of cutting has its own.
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

// Layouts that the trainer cannot execute are refused with the key that says so.
base::Result<Layout> layout_of(const spec::LayoutSpec& spec, std::int64_t rank);

}  // namespace assay::step
