#include "plan/calibrate/row_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "plan/calibrate/row_cluster.h"
#include "plan/calibrate/row_models.h"
#include "plan/calibrate/row_software.h"
#include "plan/calibrate/row_text.h"
#include "plan/model/cards.h"
#include "plan/model/constants.h"
#include "plan/model/links.h"
#include "plan/model/memory.h"

namespace assay::plan {
namespace {

// Where the micro-batch is not said, these are tried, with at most so many tokens.
constexpr double kMicroBatches[] = {1, 2, 4, 8, 16};
constexpr double kMostMicroTokens = 16384;

// Recomputation that is not said is assumed when the model's need is so far beyond the card.
constexpr double kBeyondCard = 1.164;

void note(std::string& notes, std::string_view more) {
  if (more.empty()) return;
  if (!notes.empty()) notes += "; ";
  notes += more;
}

// Empty, or why these ranks cannot be.
std::string add_degrees(const RowFields& row, const Shape& shape, Degrees& d) {
  d.ranks = *row.gpus;
  d.fsdp = row.fsdp.value_or(1);
  d.tp = row.tp.value_or(1);
  d.pp = row.pp.value_or(1);
  d.ep = row.ep.value_or(1);
  const auto contexts = number_after(row.notes, "cp=", true);
  const double others = d.fsdp * d.tp * d.pp * contexts.value_or(1);
  const bool replicas_unsaid = !row.dp && !row.fsdp;
  d.dp = replicas_unsaid ? std::max(1.0, std::floor(d.ranks / others)) : row.dp.value_or(1);
  const double product = others * d.dp;
  if (product > d.ranks || std::fmod(d.ranks, product) != 0) {
    return fmt::format("dp * fsdp * tp * pp: {} ranks, which do not fill {} gpus", product,
                       d.ranks);
  }
  if (contexts) {
    d.cp = *contexts;
  } else if (!shape.is_moe()) {
    d.cp = d.ranks / product;  // what no other axis explains splits sequences
  }
  auto chunks = number_after(row.notes, "vp=", true);
  if (!chunks) chunks = number_after(row.notes, "interleave=", false);
  if (d.pp > 1) d.chunks = chunks.value_or(1);
  if (shape.is_moe() && d.ep == 1 && contains(row.lower_notes, "deepep"))
    d.ep = std::min(d.fsdp > 1 ? d.fsdp : d.dp, shape.experts);
  d.ep_axis = d.ep > 1 && d.dp * d.fsdp * d.tp * d.pp * d.cp * d.ep == d.ranks;
  return {};
}

// Windows of attention that notes and models are known for.
void add_window(const RowFields& row, Framework framework, Shape& shape) {
  double window = 0;
  const std::string_view notes = row.lower_notes;
  if (const std::size_t at = notes.find("window"); at != std::string_view::npos) {
    window = number_after(notes.substr(at), "s=", false).value_or(0);
    // "S=1024 (runs 1 to 4) / 768 (run5 …)": the second of two
    if (window > 0 && contains_any(row.source, {"run5", "run6"})) {
      const std::size_t later = notes.find(" (run5", at);
      const std::size_t slash = notes.substr(0, later).rfind("/ ");
      if (later != std::string_view::npos && slash != std::string_view::npos && slash > at)
        window = number_after(notes.substr(slash), "/ ", false).value_or(window);
    }
  }
  if (window <= 0) {
    if (framework == Framework::kNanochat)
      window = *row.seq / 2;
    else if (contains_like(row.model, "nemotron*v3"))
      window = 256;
    else if (contains_like(row.model, "gpt?oss"))
      window = 128;
  }
  if (window <= 0) return;
  shape.window = std::min(window, *row.seq);
  shape.windowed_share = contains(row.model, "oss") ? 0.5 : 0.75;
}

RecomputeKind row_recompute(const RowFields& row) {
  if (contains(row.recompute, "full")) return RecomputeKind::kFull;
  return contains(row.recompute, "selective") ? RecomputeKind::kSelective : RecomputeKind::kNone;
}

std::vector<Batch> row_batches(const RowFields& row, Framework framework, const Degrees& degrees,
                               std::string& assumed) {
  const double sequence = *row.seq;
  auto all = number_after(row.lower_notes, "global batch ", false);
  if (!all) all = number_after(row.lower_notes, "gbs ", false);
  const double per_rank = all.value_or(1) / (degrees.dp * degrees.fsdp);
  if (row.micro_batch) {
    Batch batch{sequence, *row.micro_batch, row.grad_accum.value_or(0)};
    if (!row.grad_accum) {
      batch.micros = std::max(1.0, std::floor(per_rank / batch.micro_batch));
      note(assumed, fmt::format("grad_accum: not said, {} taken", batch.micros));
    }
    // Automodel's rows give a pipeline's local batch, and their notes what it is cut into.
    const auto cut = number_after(row.lower_notes, "mbs ", true);
    if (framework == Framework::kAutomodel && degrees.pp > 1 && cut && *cut < batch.micro_batch) {
      batch.micros *= batch.micro_batch / *cut;
      batch.micro_batch = *cut;
    }
    return {batch};
  }
  note(assumed, "micro_batch: not said, the fastest taken");
  std::vector<Batch> batches;
  for (const double micro : kMicroBatches) {
    const double micros = per_rank / micro;
    if (micros >= 1 && micros == std::floor(micros) && micro * sequence <= kMostMicroTokens)
      batches.push_back({sequence, micro, micros});
  }
  if (batches.empty()) batches.push_back({sequence, 1, std::max(1.0, per_rank)});
  return batches;
}

bool is_far_beyond_card(const Work& work) {
  return memory_need(work, prior_memory_constants()).total() > kBeyondCard * work.card.memory;
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

  Work work;
  work.shape = shape.shape;
  if (result.reason = add_degrees(row, work.shape, work.degrees); !result.reason.empty())
    return result;
  note(result.reason, shape.assumed);
  work.card = sheet->card;
  if (const auto watts = watts_in(row.lower_notes); watts && *watts >= 100 && *watts <= 1500)
    work.card.watts = *watts;
  const auto links = links_of(row_cluster(row, *sheet));
  if (!links) {
    result.reason = links.error().line();
    return result;
  }
  work.links = *links;

  const Framework framework = row_framework(row);
  work.software = row_software(row, framework, work.shape, work.card);
  work.degrees.sequence_parallel =
      contains(row.recompute, "seqpar") || framework == Framework::kMegatronBridge ||
      framework == Framework::kMegatronCore || framework == Framework::kKempner;
  work.recompute = row_recompute(row);
  work.fp8 = contains(row.precision, "fp8");
  work.fp8_by_row = contains(row.precision, "row");
  work.lora = contains(row.software, "lora");
  work.muon = framework == Framework::kNanochat || contains(row.software, "muon");
  add_window(row, framework, work.shape);
  // Megatron-DeepSpeed's vocabulary is padded for tensor parallelism only.
  work.shape.ragged_vocab = std::fmod(work.shape.vocab, 8) != 0 ||
                            (framework == Framework::kMegatronDeepspeed && work.degrees.tp == 1 &&
                             !contains(row.software, "mt-nlg"));
  for (const Batch& batch : row_batches(row, framework, work.degrees, result.reason)) {
    work.batch = batch;
    result.candidates.push_back(work);
    const bool unsaid = row.recompute.empty() && !work.shape.is_moe() && work.degrees.pp <= 1;
    if (unsaid && is_far_beyond_card(work)) {
      result.candidates.back().recompute = RecomputeKind::kFull;
      note(result.reason, "ac: not said, full taken for what the card holds");
    }
  }
  return result;
}

}  // namespace assay::plan
