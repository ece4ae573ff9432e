#include "train/score.h"

#include <fmt/format.h>

#include <algorithm>
#include <numbers>
#include <span>
#include <vector>

namespace assay::train {
namespace {

// Rows of a micro-batch, filled one after the other.
class Rows {
 public:
  Rows(Backend& backend, const step::Program& program, TextScore& score)
      : backend_(backend),
        program_(program),
        score_(score),
        tokens_(static_cast<std::size_t>(program.micro_tokens())),
        targets_(tokens_.size(), -1) {}

  // `count` + 1 tokens of the shard from `first` on: inputs and, one later, targets.
  base::Result<void> add(const data::Shard& shard, std::uint64_t first, std::uint64_t count) {
    const std::size_t at = row_ * static_cast<std::size_t>(program_.choices.sequence);
    for (std::uint64_t i = 0; i < count; ++i) {
      tokens_[at + i] = static_cast<std::int32_t>(shard.token(first + i));
      targets_[at + i] = static_cast<std::int32_t>(shard.token(first + i + 1));
    }
    ++row_;
    return row_ == static_cast<std::size_t>(program_.choices.micro_batch) ? flush()
                                                                          : base::Result<void>{};
  }

  base::Result<void> flush() {
    if (row_ == 0) return {};
    ASSAY_TRY_VOID(run_step(
        backend_, program_, {.counted_targets = static_cast<double>(tokens_.size())},
        [&](std::int32_t, std::span<std::int32_t> tokens, std::span<std::int32_t> targets) {
          std::ranges::copy(tokens_, tokens.begin());
          std::ranges::copy(targets_, targets.begin());
          return base::Result<void>{};
        }));
    std::array<float, step::kSummedScalars> sums{};
    ASSAY_TRY_VOID(
        backend_.read(program_.sums.rows_from(0, 1), std::as_writable_bytes(std::span(sums))));
    score_.nats += static_cast<double>(sums[static_cast<std::size_t>(step::Scalar::kLossSum)]);
    score_.tokens += std::ranges::count_if(targets_, [](std::int32_t t) { return t >= 0; });
    std::ranges::fill(tokens_, 0);
    std::ranges::fill(targets_, -1);
    row_ = 0;
    return {};
  }

 private:
  Backend& backend_;
  const step::Program& program_;
  TextScore& score_;
  std::vector<std::int32_t> tokens_;
  std::vector<std::int32_t> targets_;
  std::size_t row_ = 0;
};

// The number of bytes of text in each token; 0 for added tokens.
std::vector<std::int64_t> token_bytes(const data::Tokenizer& tokenizer) {
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(tokenizer.vocabulary()));
  for (data::TokenId id = 0; id < bytes.size(); ++id) {
    if (const auto text = tokenizer.decode(std::span(&id, 1))) {
      bytes[id] = static_cast<std::int64_t>(text->size());
    }
  }
  for (const auto& [text, id] : tokenizer.added()) {
    if (id < bytes.size()) bytes[id] = 0;
  }
  return bytes;
}

}  // namespace

TextScore& TextScore::operator+=(const TextScore& other) {
  nats += other.nats;
  tokens += other.tokens;
  bytes += other.bytes;
  documents += other.documents;
  return *this;
}

double TextScore::bits_per_byte() const {
  return nats / std::numbers::ln2 / static_cast<double>(bytes);
}

base::Result<std::int64_t> longest_row(const data::Shard& shard, const ScoreRequest& options) {
  ASSAY_TRY_VOID(shard.check_documents());
  const auto starts = shard.documents();
  std::uint64_t longest = starts.empty() ? shard.count() : 0;
  for (std::size_t d = 0; d < starts.size(); ++d) {
    const std::uint64_t end = d + 1 < starts.size() ? starts[d + 1] : shard.count();
    longest = std::max(longest, end - starts[d]);
  }
  // The last token is only a target, not an input.
  const auto row = static_cast<std::int64_t>(std::max<std::uint64_t>(longest, 2) - 1);
  return options.tokens > 0 ? std::min(row, options.tokens) : row;
}

base::Result<TextScore> score(Backend& backend, const step::Program& program,
                              const data::Shard& shard, const data::Tokenizer& tokenizer,
                              const ScoreRequest& options) {
  TextScore found;
  Rows rows(backend, program, found);
  const std::vector<std::int64_t> bytes = token_bytes(tokenizer);
  const auto sequence = static_cast<std::uint64_t>(program.choices.sequence);
  auto left = options.tokens > 0 ? static_cast<std::uint64_t>(options.tokens) : shard.count();
  const auto starts = shard.documents();
  ASSAY_TRY_VOID(shard.check_documents());
  ASSAY_TRY_VOID(
      data::check_tokens(shard, 0, shard.count(), static_cast<std::uint64_t>(program.model.vocab)));
  const std::size_t documents = std::max<std::size_t>(starts.size(), 1);
  for (std::size_t d = 0; d < documents && left > 0; ++d) {
    std::uint64_t at = starts.empty() ? 0 : starts[d];
    const std::uint64_t end = d + 1 < starts.size() ? starts[d + 1] : shard.count();
    if (end - at > 1) ++found.documents;
    while (end - at > 1 && left > 0) {
      const std::uint64_t count = std::min({sequence, end - at - 1, left});
      ASSAY_TRY_VOID(rows.add(shard, at, count));
      for (std::uint64_t i = 1; i <= count; ++i) {
        const std::uint32_t token = shard.token(at + i);
        if (token < bytes.size()) found.bytes += bytes[token];
      }
      at += count;
      left -= count;
      if (options.progress) options.progress(static_cast<std::int64_t>(count));
    }
  }
  ASSAY_TRY_VOID(rows.flush());
  ASSAY_TRY_VOID(shard.intact());
  if (found.tokens == 0) {
    return base::fail(base::usage_error(shard.where(), "has no document of two tokens",
                                        "there is nothing to predict"));
  }
  return found;
}

}  // namespace assay::train
