// Traits of software that depend on its release. Published rows ran the release of their date; jobs
// are planned as the newest.
#pragma once

#include <optional>

#include "plan/model/work.h"

namespace assay::plan {

// In years: 2025.5 is the first of July 2025.
inline constexpr double kNewestRelease = 2026.7;

struct Release {
  std::optional<double> date;  // unknown: earlier than everything that came with some release
  bool bf16 = false;           // weights, not fp16
  bool quantised = false;      // products in fp8 or fp4
  bool engine = false;         // the source says that it is Transformer Engine's
  // Norms and activations are fused as Megatron does it, or have separate kernels.
  bool fused_norms = true;
  // The source says which CUDA graphs are captured, or that the recipe is not tuned.
  bool graphs_known = false;
  bool hybrid = false;  // some layers keep a state instead of attending
};

// Share of launches that CUDA graphs of single layers replay.
inline constexpr double kGraphedLayers = 0.5;

// Takes away what came later than the release, and adds what depends on the weights' type, before
// anything that a source says of its run.
void make_earlier(const Release& release, const Card& card, Software& software);

// Adds what the release has to the traits of its framework, whose graphs are known by then.
void add_release(const Release& release, bool mixture, const Card& card, Software& software);

}  // namespace assay::plan
