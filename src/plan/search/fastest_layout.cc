#include "plan/search/fastest_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "plan/trainer_rules.h"
#include "spec/rules.h"

namespace assay::plan {
namespace {

constexpr std::size_t kRanked = 32;

// Inserts `choice`, after those that are as fast.
void rank(std::vector<LayoutChoice>& ranked, const LayoutChoice& choice) {
  if (ranked.size() == kRanked && !(choice.step < ranked.back().step)) return;
  const auto faster = [](const LayoutChoice& a, const LayoutChoice& b) { return a.step < b.step; };
  ranked.insert(std::upper_bound(ranked.begin(), ranked.end(), choice, faster), choice);
  if (ranked.size() > kRanked) ranked.pop_back();
}

// Sharded Muon can be predicted as nanochat implements it: every rank is a replica that updates its
// part.
bool is_predicted(const Work& work, const spec::LayoutSpec& l) {
  return !work.muon || l.inner_ranks() * l.dp == 1 ||
         (l.dp * l.tp * l.pp * l.cp * l.ep == 1 && l.zero == 2);
}

}  // namespace

FastestLayout fastest_layout(const spec::JobSpec& job, const Work& work, std::int64_t sequences,
                             base::Bytes memory, const ModelConstants& constants) {
  FastestLayout found;
  found.least_memory = base::Bytes(std::numeric_limits<std::int64_t>::max());
  const Framework framework = work.software.framework;
  const TrainerRules trainer(job, framework);
  Layouts layouts = layouts_of(job, sequences, framework);
  found.rejected = std::move(layouts.rejected);
  const auto recomputations = static_cast<std::int64_t>(recomputations_of(framework).size());
  Work tried = work;
  spec::JobSpec muon_job = job;
  spec::BatchSpec batch = job.batch;
  std::int64_t unknown = 0;
  std::int64_t without_batch = 0;
  for (const spec::LayoutSpec& layout : layouts.valid) {
    if (!is_predicted(work, layout)) {
      ++unknown;
      continue;
    }
    if (work.muon) {
      muon_job.layout = layout;
      const auto exchange = muon_exchange_of(muon_job);
      if (!exchange) continue;  // more bytes than can be counted
      tried.muon_exchange = *exchange;
    }
    const std::int64_t per_rank = sequences / layout.data_ranks();
    const std::vector<std::int64_t> micro_batches = divisors_of(per_rank);
    bool accepted = false;
    for (const std::int64_t micro_batch : micro_batches) {
      batch.micro_batch = micro_batch;
      batch.accumulate = per_rank / batch.micro_batch;
      if (!spec::fills_pipeline(layout, batch) || !trainer.accept(layout, batch)) continue;
      accepted = true;
      found.considered += recomputations;
      spread(tried, layout, batch);
      const RecomputeChoice choice = choose_recompute(tried, constants, memory);
      found.least_memory = std::min(found.least_memory, choice.memory.total());
      if (!choice.fits) {
        found.too_large += recomputations;
      } else {
        rank(found.ranked, {layout, batch, choice.kind, choice.step, choice.memory});
      }
    }
    if (!accepted) ++without_batch;
  }
  if (!found.ranked.empty()) found.best = found.ranked.front();
  if (without_batch > 0) {
    found.rejected.push_back(
        {fmt::format(
             "batch: no micro-batch of {} sequences per step suits the pipeline stages and ranks",
             sequences),
         without_batch});
  }
  if (unknown > 0) {
    found.rejected.push_back(
        {"train.optimizer: muon can only be predicted with fsdp and zero 2 alone", unknown});
  }
  return found;
}

}  // namespace assay::plan
