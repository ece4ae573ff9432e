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
  bool engine = false;         // the source states Transformer Engine
  // Norms and activations are fused as Megatron does it, or have separate kernels.
  bool fused_norms = true;
  // The source says which CUDA graphs are captured, or that the recipe is not tuned.
  bool graphs_known = false;
  bool hybrid = false;  // some layers keep a state instead of attending
};

// Share of launches that CUDA graphs of single layers replay.
inline constexpr double kGraphedLayers = 0.5;

// Removes traits that came later than the release, and adds those that depend on the weights' type.
// To be called before what a source states about its run is applied.
void make_earlier(const Release& release, const Card& card, Software& software);

// Adds the traits of the release to those of its framework. CUDA graphs must be known by then.
void add_release(const Release& release, bool mixture, const Card& card, Software& software);

}  // namespace assay::plan
