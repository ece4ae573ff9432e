// Recomputation as the model tells it apart, and what a job (train.recompute) says for it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "plan/model/software.h"
#include "spec/job.h"

namespace assay::plan {

// Selective is what other software does between none and full; cheap and ffn are our trainer's.
enum class RecomputeKind : std::uint8_t { kNone, kCheap, kSelective, kFfn, kFull };

std::string_view to_text(RecomputeKind kind);
std::optional<RecomputeKind> parse_recompute(std::string_view text);

// What a job says for it: what other software recomputes selectively is what a job calls cheap.
spec::Recompute recompute_key(RecomputeKind kind);
// What software has, from what keeps most to what keeps least; ours as in step/recompute.h.
std::span<const RecomputeKind> recomputations_of(Framework framework);
// What software does for a job; none if the job leaves it open.
RecomputeKind recompute_of(spec::Recompute key, Framework framework);

}  // namespace assay::plan
