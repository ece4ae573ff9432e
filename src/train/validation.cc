#include "train/validation.h"

#include <algorithm>
#include <array>

#include "train/job_data.h"

namespace assay::train {
namespace {

// Fixed, so that runs with different seeds are evaluated on the same text.
constexpr std::uint64_t kValidationSeed = 0;

std::uint64_t windows_of(const data::TokenSet& set, std::int64_t tokens) {
  const std::uint64_t wanted =
      (static_cast<std::uint64_t>(tokens) + set.sequence() - 1) / set.sequence();
  return std::clamp<std::uint64_t>(wanted, 1, set.windows());
}

using Sums = std::array<float, step::kSummedScalars>;

double summed(const Sums& sums, step::Scalar which) {
  return static_cast<double>(sums[static_cast<std::size_t>(which)]);
}

// The same on every rank: the last stage has the sums, in parts on the ranks that share the
// windows.
base::Result<std::vector<Sums>> sums_of_window(const step::Layout& layout, const Sums& own,
                                               comm::Communicator* ranks) {
  if (layout.pipeline.ranks == 1 && layout.context.ranks == 1) return std::vector{own};
  std::vector<Sums> all(static_cast<std::size_t>(layout.ranks()));
  ASSAY_TRY_VOID(ranks->all_gather(own.data(), all.data(), static_cast<std::int64_t>(own.size()),
                                   comm::ElementType::kF32));
  step::Layout last = layout;
  last.pipeline.rank = last.pipeline.ranks - 1;
  last.tensor.rank = last.shard.rank = last.expert.rank = last.replica.rank = 0;
  std::vector<Sums> parts;
  for (const std::int64_t rank : last.members(step::Axis::kContext)) {
    parts.push_back(all[static_cast<std::size_t>(rank)]);
  }
  return parts;
}

}  // namespace

Validation::Validation(const data::TokenSet& set, const step::Program& program, std::int64_t tokens)
    : program_(&program),
      reader_(set, kValidationSeed, static_cast<std::int32_t>(program.model.vocab),
              mask_of(program)),
      windows_(windows_of(set, tokens)) {
  for (const step::Op& op : program.ops) {
    if (op.micro == 0 && op.phase == step::Phase::kForward) forward_.push_back(&op);
  }
}

std::int64_t Validation::tokens() const {
  return static_cast<std::int64_t>(reader_.counted_targets(0, windows_));
}

base::Result<void> Validation::fill(std::uint64_t first, data::Batch& batch) const {
  const auto rows = static_cast<std::uint64_t>(program_->choices.micro_batch);
  const std::uint64_t used = std::min(rows, windows_ - first);
  data::BatchShare share = share_of(*program_);
  share = {.micro = used, .part = share.part};
  const std::size_t size = used * share.tokens(reader_.set().sequence());
  batch.tokens.assign(static_cast<std::size_t>(program_->micro_tokens()), 0);
  batch.targets.assign(batch.tokens.size(), -1);
  data::BatchSpans to{std::span(batch.tokens).first(size), std::span(batch.targets).first(size)};
  if (program_->choices.document_mask) {
    batch.documents.assign(batch.tokens.size(), 0);
    to.documents = std::span(batch.documents).first(size);
  }
  return reader_.read(first, share, to);
}

base::Result<std::optional<double>> Validation::loss(Backend& backend,
                                                     const std::atomic<bool>* stop,
                                                     comm::Communicator* ranks) const {
  const auto rows = static_cast<std::uint64_t>(program_->choices.micro_batch);
  data::Batch batch;
  double sum = 0;
  double count = 0;
  for (std::uint64_t first = 0; first < windows_; first += rows) {
    if (stop != nullptr && stop->load()) return std::nullopt;
    ASSAY_TRY_VOID(fill(first, batch));
    backend.begin_step({.counted_targets = static_cast<double>(program_->micro_tokens())});
    ASSAY_TRY_VOID(gather_first_weights(backend, *program_));
    for (const step::Op* op : forward_) {
      if (op->kind == step::OpKind::kRead) {
        backend.set_batch(*op, {batch.tokens, batch.targets, batch.documents});
      } else {
        ASSAY_TRY_VOID(backend.execute(*op));
      }
    }
    ASSAY_TRY_VOID(backend.finish_step());
    // Summed here in double: the device sums in fp32.
    Sums sums{};
    ASSAY_TRY_VOID(
        backend.read(program_->sums.rows_from(0, 1), std::as_writable_bytes(std::span(sums))));
    ASSAY_TRY(const std::vector<Sums> all, sums_of_window(program_->choices.layout, sums, ranks));
    for (const Sums& part : all) {
      sum += summed(part, step::Scalar::kLossSum);
      count += summed(part, step::Scalar::kCount);
    }
  }
  return sum / count;
}

}  // namespace assay::train
