#include "plan/model/recompute.h"

#include <array>

namespace assay::plan {
namespace {

constexpr std::array<std::string_view, 5> kRecomputeNames = {"none", "cheap", "selective", "ffn",
                                                             "full"};

constexpr std::array kTrainerKinds = {RecomputeKind::kNone, RecomputeKind::kCheap,
                                      RecomputeKind::kFfn, RecomputeKind::kFull};
constexpr std::array kUsualKinds = {RecomputeKind::kNone, RecomputeKind::kSelective,
                                    RecomputeKind::kFull};
constexpr std::array kNoKinds = {RecomputeKind::kNone};

}  // namespace

std::string_view to_text(RecomputeKind kind) {
  return kRecomputeNames[static_cast<std::size_t>(kind)];
}

std::optional<RecomputeKind> parse_recompute(std::string_view text) {
  for (std::size_t i = 0; i < kRecomputeNames.size(); ++i) {
    if (text == kRecomputeNames[i]) return static_cast<RecomputeKind>(i);
  }
  return std::nullopt;
}

spec::Recompute recompute_key(RecomputeKind kind) {
  switch (kind) {
    case RecomputeKind::kNone:
      break;
    case RecomputeKind::kCheap:
    case RecomputeKind::kSelective:
      return spec::Recompute::kCheap;
    case RecomputeKind::kFfn:
      return spec::Recompute::kFfn;
    case RecomputeKind::kFull:
      return spec::Recompute::kFull;
  }
  return spec::Recompute::kNone;
}

std::span<const RecomputeKind> recomputations_of(Framework framework) {
  switch (framework) {
    case Framework::kAssay:
      return kTrainerKinds;
    case Framework::kNanochat:
    case Framework::kLlmc:
      return kNoKinds;
    default:
      return kUsualKinds;
  }
}

RecomputeKind recompute_of(spec::Recompute key, Framework framework) {
  const bool ours = framework == Framework::kAssay;
  if (recomputations_of(framework).size() == 1) return RecomputeKind::kNone;
  switch (key) {
    case spec::Recompute::kCheap:
      return ours ? RecomputeKind::kCheap : RecomputeKind::kSelective;
    case spec::Recompute::kFfn:
      return ours ? RecomputeKind::kFfn : RecomputeKind::kSelective;
    case spec::Recompute::kFull:
      return RecomputeKind::kFull;
    case spec::Recompute::kNone:
    case spec::Recompute::kAuto:
      break;
  }
  return RecomputeKind::kNone;
}

}  // namespace assay::plan
