#include "plan/calibrate/row_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "plan/calibrate/row_batch.h"
#include "plan/calibrate/row_cluster.h"
#include "plan/calibrate/row_layout.h"
#include "plan/calibrate/row_models.h"
#include "plan/calibrate/row_software.h"
#include "plan/calibrate/row_text.h"
#include "plan/model/cards.h"
#include "plan/model/cluster_links.h"
#include "plan/model/constants.h"
#include "plan/model/memory.h"

namespace assay::plan {
namespace {

// Recomputation that is not stated is assumed when the model's need is so far beyond the card.
constexpr double kBeyondCard = 1.164;
constexpr double kV4Keys = 340;
// When Megatron could spread whole experts over tensor-parallel ranks.
constexpr double kWholeExperts = 2025.3;
// Rows of the fullest rank where nothing forces a router to balance: one job of Megatron-Bridge,
// measured both ways, takes 6 % longer, of which experts are two thirds.
constexpr double kNaturalLoad = 1.1;

void note(std::string& notes, std::string_view more) {
  if (more.empty()) return;
  if (!notes.empty()) notes += "; ";
  notes += more;
}

// Windows of attention that notes and models are known for.
void add_window(const RowFields& row, Framework framework, Shape& shape) {
  double window = 0;
  const std::string_view notes = row.lower_notes;
  if (const auto at = stated_at(notes, "window")) {
    // "window SSSL S=1024": behind the word, in the same clause
    const std::string_view clause = notes.substr(*at, notes.find_first_of(";,", *at) - *at);
    window = number_after(clause, "s=", true).value_or(0);
    // "S=1024 (runs 1 to 4) / 768 (run5 …)": the second of two
    if (window > 0 && contains_any(row.source, {"run5", "run6"})) {
      const std::size_t later = notes.find(" (run5", *at);
      const std::size_t slash = notes.substr(0, later).rfind("/ ");
      if (later != std::string_view::npos && slash != std::string_view::npos && slash > *at)
        window = number_after(notes.substr(slash), "/ ", false).value_or(window);
    }
  }
  if (contains_like(row.model, "deepseek?v4")) {
    // Half of the layers look at 128 keys and 512 compressed ones, the others at few more than 128.
    shape.window = std::min(kV4Keys, *row.seq);
    shape.windowed_share = 1;
    return;
  }
  if (window <= 0) {
    if (framework == Framework::kNanochat)
      window = *row.seq / 2;
    else if (contains_any(row.attention, {"mamba", "deltanet", "csa"}) ||
             contains_like(row.model, "nemotron*v3") || contains_like(row.model, "nemotron?h"))
      window = 256;
    else if (contains_like(row.model, "gpt?oss"))
      window = 128;
  }
  const bool states = contains_any(row.attention, {"mamba", "deltanet"}) ||
                      contains_like(row.model, "nemotron*v3") ||
                      contains_like(row.model, "nemotron?h");
  if (states) shape.state_share = contains(row.attention, "deltanet") ? 0.75 : 0.9;
  if (window <= 0) return;
  shape.window = std::min(window, *row.seq);
  shape.windowed_share = contains(row.model, "oss") ? 0.5 : 0.75;
}

RecomputeKind row_recompute(const RowFields& row) {
  // MaxText's policy that keeps the first products alone makes everything else again.
  if (contains_any(row.recompute, {"full", "save_qkv"})) return RecomputeKind::kFull;
  return contains(row.recompute, "selective") ? RecomputeKind::kSelective : RecomputeKind::kNone;
}

// "selective:mlp+core_attn"
RecomputedModules recomputed_modules(const RowFields& row) {
  const std::size_t colon = row.recompute.find(':');
  if (colon == std::string::npos) return {};
  const std::string modules = '+' + row.recompute.substr(colon + 1) + '+';
  return {.attention = contains(modules, "+core_attn+"),
          .mlp = contains_any(modules, {"+mlp+", "+ffn+"}),
          .experts = contains(modules, "+moe+")};
}

// Of the card's memory. PyTorch's allocator holds more than it has given out: 3 to 20 % in the rows
// that state both.
double share_of_card(const Work& work) {
  constexpr double kReserved = 1.08;
  const double need = memory_need(work, prior_memory_constants()).total() / work.card.memory;
  return work.software.hostless ? need : kReserved * need;
}

// A measured run must fit its card. If assumed values make it impossible, the next most likely
// values that fit are used. Returns a description of them.
std::string make_possible(const RowFields& row, Work& work) {
  if (share_of_card(work) <= 1) return {};
  std::string taken;
  const auto stop = [&](std::string_view what) {
    note(taken, what);
    return share_of_card(work) <= 1;
  };
  Software& s = work.software;
  if (work.fp8 && s.quantised_copies && !work.lora) {
    s.quantised_copies = false;
    if (stop("weights in fp8 alone assumed: copies in bf16 would not fit the card")) return taken;
  }
  if (!s.flash && !contains(row.software, "no flash") && !contains(row.software, "unfused") &&
      (!row.recompute.empty() || row.mem_gb)) {
    s.flash = true;
    if (stop("flash attention assumed: scores would not fit the card")) return taken;
  }
  if (!row.recompute.empty()) return taken;
  // Eager software recomputed what did not fit. Later software saves memory in other ways:
  // in pipelines, for mixtures, and where hosts lend theirs.
  const bool eager = !s.fused && s.framework != Framework::kAutomodel;
  const bool other_ways = work.shape.is_moe() ||
                          (!eager && (work.degrees.pp > 1 || share_of_card(work) <= kBeyondCard));
  if (other_ways) return taken;
  work.recompute = RecomputeKind::kSelective;
  if (!eager && share_of_card(work) <= 1) {
    note(taken, "ac: not stated, selective assumed to fit the card");
    return taken;
  }
  work.recompute = RecomputeKind::kFull;
  note(taken, "ac: not stated, full assumed to fit the card");
  return taken;
}

// Keeps the possible layouts that fit the card; if none does, the smallest. A model is rarely
// divided further than necessary.
void keep_probable(std::vector<Work>& works) {
  double least = std::numeric_limits<double>::infinity();
  for (const Work& work : works) least = std::min(least, share_of_card(work));
  std::erase_if(works,
                [&](const Work& work) { return share_of_card(work) > std::max(least, 1.0); });
  const auto cuts = [](const Work& work) { return work.degrees.tp * work.degrees.pp; };
  double fewest = std::numeric_limits<double>::infinity();
  for (const Work& work : works) fewest = std::min(fewest, cuts(work));
  std::erase_if(works, [&](const Work& work) { return cuts(work) > fewest; });
}

// Empty, or what keeps the card from computing in the row's precision.
std::string impossible_precision(const RowFields& row, const CardSheet& sheet) {
  const bool scaled = contains_any(row.precision, {"fp4", "mx"});
  if (!scaled || has_block_scales(sheet.card, contains(row.precision, "nvfp4"))) return {};
  return fmt::format("precision: '{}' has no {}", sheet.name,
                     base::shortened(base::printable(row.precision), 40));
}

// Empty, or why ranks cannot have as many experts each.
std::string uneven_experts(const RowFields& row, const Shape& shape) {
  const double ep = row.ep.value_or(1);
  if (ep <= 1 || ep > shape.experts || std::fmod(shape.experts, ep) == 0) return {};
  return fmt::format("ep: {} ranks of {} experts", ep, shape.experts);
}

// What does not depend on the layout. Empty, or why there is no such work.
std::string add_all_but_layout(const RowFields& row, const CardSheet& sheet, Framework framework,
                               Work& work) {
  work.card = sheet.card;
  if (std::string impossible = impossible_precision(row, sheet); !impossible.empty())
    return impossible;
  if (const auto watts = watts_in(row.lower_notes); watts && *watts >= 100 && *watts <= 1500)
    work.card.watts = base::Watts(*watts);
  const auto links = links_of(row_cluster(row, sheet));
  if (!links) return links.error().line();
  work.links = *links;
  work.software = row_software(row, framework, work.shape, work.card);
  work.recompute = row_recompute(row);
  work.recomputed = recomputed_modules(row);
  work.fp4 = contains(row.precision, "fp4");
  work.fp8 = work.fp4 || contains_any(row.precision, {"fp8", "float8"});
  work.fp8_by_row = contains(row.precision, "row");
  work.lora = states_any(row.software, {"lora", "qlora"});
  work.muon = framework == Framework::kNanochat || states(row.software, "muon") ||
              contains(row.optimizer, "muon");
  work.muon_exchange.stacked = framework == Framework::kNanochat;
  // An embedding, one for every other layer, five stacks of matrices and the head, reduced and
  // gathered, and two scalars.
  if (framework == Framework::kNanochat)
    work.muon_exchange.calls = 12 + 2 * (1 + std::ceil(work.shape.layers / 2));
  add_window(row, framework, work.shape);
  return {};
}

// Whether experts are cut over the tensor-parallel ranks. Megatron did so until expert and tensor
// parallelism could be chosen apart; recipes since have whole experts.
bool cuts_experts(const RowFields& row, const Work& work) {
  if (!is_megatron_core(work.software.framework) || !work.shape.is_moe() || work.degrees.tp <= 1)
    return false;
  if (const auto said = number_after(row.lower_notes, "etp=", true)) return *said > 1;
  return work.degrees.ep == 1 || (row.date && *row.date < kWholeExperts);
}

void add_layout(const RowFields& row, const Degrees& degrees, Work& work) {
  const Framework framework = work.software.framework;
  work.degrees = degrees;
  // "1 (within 8 GPUs)": replicas share the optimizer's state in groups.
  if (const auto sharers = number_after(row.zero, "within ", false); sharers && *sharers >= 1)
    work.degrees.state_shards = std::min(*sharers, degrees.dp);
  work.degrees.sequence_parallel =
      contains(row.recompute, "seqpar") || framework == Framework::kMegatronBridge ||
      framework == Framework::kMegatronCore || framework == Framework::kKempner ||
      framework == Framework::kTorch || framework == Framework::kTorchCompiled ||
      framework == Framework::kXla;
  // DeepSpeed's ZeRO-2 shares gradients as well.
  if (states(row.software, "zero-2") && degrees.fsdp <= 1)
    work.degrees.gradient_shards = degrees.dp;
  work.degrees.spared_ends = contains(row.lower_notes, "first and last stage have one layer less");
  work.degrees.experts_cut = cuts_experts(row, work);
  if (states(row.software, "natural routing")) work.degrees.expert_load = kNaturalLoad;
  work.shape.ragged_vocab = !pads_vocabulary(framework) && std::fmod(work.shape.vocab, 8) != 0;
  // The heads of vTrain's grid are as slow as products that are not aligned, whatever its notes
  // assume of the vocabulary (docs/plan-model.md, 6).
  if (contains(row.software, "ground_truth_single")) work.shape.ragged_vocab = degrees.tp == 1;
}

}  // namespace

RowWork row_work(const RowFields& row) {
  RowWork result;
  const CardSheet* sheet = find_card(row.gpu_type);
  if (sheet == nullptr) {
    result.reason = fmt::format("gpu_type: no data sheet of '{}'",
                                base::shortened(base::printable(row.gpu_type), 40));
    return result;
  }
  RowShape shape = row_shape(row);
  if (result.reason = shape.reason; !result.reason.empty()) return result;
  if (result.reason = uneven_experts(row, shape.shape); !result.reason.empty()) return result;
  const RowFramework software = row_framework(row, shape.shape.is_moe());
  const auto sequences = row_sequences(row);
  const RowLayouts layouts = row_layouts(row, shape.shape, software.framework, sequences);
  if (result.reason = layouts.reason; !result.reason.empty()) return result;

  Work work;
  work.shape = shape.shape;
  result.reason = add_all_but_layout(row, *sheet, software.framework, work);
  if (!result.reason.empty()) return result;

  RowBatches batches;
  std::string possible;
  for (const Degrees& degrees : layouts.candidates) {
    add_layout(row, degrees, work);
    batches = row_batches(row, work.shape, software.framework, degrees, sequences);
    for (const Batch& batch : batches.candidates) {
      work.batch = batch;
      result.candidates.push_back(work);
      const std::string taken = make_possible(row, result.candidates.back());
      if (!taken.empty()) possible = taken;
    }
  }
  if (layouts.candidates.size() > 1) keep_probable(result.candidates);
  for (const std::string& assumed :
       {shape.assumed, layouts.assumed, software.assumed, batches.assumed}) {
    note(result.reason, assumed);
  }
  note(result.reason, possible);
  if (!contains(possible, "ac: ") && row.recompute.empty()) note(result.reason, "ac none assumed");
  result.assumed = !result.reason.empty();
  result.batch_unknown = batches.unknown;
  result.by_rate = batches.by_rate;
  result.micro_unknown = batches.micro_unknown;
  return result;
}

}  // namespace assay::plan
