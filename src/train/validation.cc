#include "train/validation.h"

#include <algorithm>
#include <array>

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

}  // namespace

Validation::Validation(const data::TokenSet& set, const step::Program& program, std::int64_t tokens)
    : program_(&program),
      reader_(set, kValidationSeed, static_cast<std::int32_t>(program.model.vocab)),
      windows_(windows_of(set, tokens)) {
  for (const step::Op& op : program.ops) {
    if (op.micro == 0 && op.phase == step::Phase::kForward) forward_.push_back(&op);
  }
}

std::int64_t Validation::tokens() const {
  return static_cast<std::int64_t>(windows_ * reader_.set().sequence());
}

base::Result<void> Validation::fill(std::uint64_t first, data::Batch& batch) const {
  const auto rows = static_cast<std::uint64_t>(program_->choices.micro_batch);
  const std::uint64_t used = std::min(rows, windows_ - first);
  const std::size_t size = used * reader_.set().sequence();
  batch.tokens.assign(static_cast<std::size_t>(program_->micro_tokens()), 0);
  batch.targets.assign(batch.tokens.size(), -1);
  return reader_.read(first, {.micro = used}, std::span(batch.tokens).first(size),
                      std::span(batch.targets).first(size));
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
    for (const step::Op* op : forward_) {
      if (op->kind == step::Kind::kRead) {
        backend.set_batch(*op, batch.tokens, batch.targets);
      } else {
        ASSAY_TRY_VOID(backend.execute(*op));
      }
    }
    ASSAY_TRY_VOID(backend.finish_step());
    // Summed here in double: the device sums in fp32.
    Sums sums{};
    ASSAY_TRY_VOID(
        backend.read(program_->sums.rows_from(0, 1), std::as_writable_bytes(std::span(sums))));
    const step::Layout& layout = program_->choices.layout;
    if (layout.pipeline.ranks > 1) {  // the last stage has them
      const std::int64_t root = layout.ranks() - layout.ranks() / layout.pipeline.ranks;
      ASSAY_TRY_VOID(ranks->broadcast(sums.data(), static_cast<std::int64_t>(sums.size()),
                                      comm::Dtype::kF32, static_cast<int>(root)));
    }
    sum += summed(sums, step::Scalar::kLossSum);
    count += summed(sums, step::Scalar::kCount);
  }
  return sum / count;
}

}  // namespace assay::train
