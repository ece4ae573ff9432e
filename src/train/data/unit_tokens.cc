#include "train/data/unit_tokens.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "train/data/documents/json_line.h"

namespace assay::data {
namespace {

// How far into a unit the joiner looks for a common word end.
constexpr std::size_t kHeadBytes = 4096;

base::Result<void> encode_text(Encoder& encoder, const DocumentRules& rules, UnitTokens& made) {
  const std::string_view text = made.unit.text;
  if (!made.unit.begin.inside) {
    made.starts.push_back(0);
    ++made.documents;
    if (rules.bos) made.tokens.push_back(*rules.bos);
    ASSAY_TRY_VOID(encoder.feed(text, made.tokens));
  } else {
    const std::string_view head = text.substr(0, kHeadBytes);
    encoder.watch(&made.head);
    const auto fed = encoder.feed(head, made.tokens);
    encoder.watch(nullptr);
    ASSAY_TRY_VOID(fed);
    ASSAY_TRY_VOID(encoder.feed(text.substr(head.size()), made.tokens));
  }
  if (!made.unit.ends) {
    made.rest = encoder.abandon();
    return {};
  }
  ASSAY_TRY_VOID(encoder.finish(made.tokens));
  if (rules.eos) made.tokens.push_back(*rules.eos);
  return {};
}

base::Result<void> encode_lines(Encoder& encoder, const DocumentRules& rules,
                                const std::string& path, UnitTokens& made) {
  made.text_bytes = 0;
  const auto encode = [&](const std::string& document) -> base::Result<void> {
    made.starts.push_back(made.tokens.size());
    if (rules.bos) made.tokens.push_back(*rules.bos);
    ASSAY_TRY_VOID(encoder.feed(document, made.tokens));
    ASSAY_TRY_VOID(encoder.finish(made.tokens));
    if (rules.eos) made.tokens.push_back(*rules.eos);
    ++made.documents;
    made.text_bytes += document.size();
    return {};
  };
  return for_each_document(
      {made.unit.text, made.unit.begin.row, path, rules.column, rules.skip_bad_rows},
      made.rows_without, encode);
}

// The number of tokens before this offset at the beginning of the unit, if a word ends there.
std::optional<std::size_t> tokens_before(const UnitTokens& made, std::uint64_t bytes) {
  if (bytes == 0) return 0;
  const auto found = std::ranges::lower_bound(made.head, bytes, {}, &WordEnd::bytes);
  if (found == made.head.end() || found->bytes != bytes) return std::nullopt;
  return found->tokens;
}

}  // namespace

UnitTokens tokens_of_unit(Encoder& encoder, const DocumentRules& rules, DocumentFormat format,
                          const std::string& path, TextUnit unit) {
  UnitTokens made{.unit = std::move(unit)};
  made.text_bytes = made.unit.text.size();
  const auto outcome = has_rows(format) ? encode_lines(encoder, rules, path, made)
                                        : encode_text(encoder, rules, made);
  if (outcome) return made;
  made.error = outcome.error();
  if (made.error->where.empty()) made.error->where = path;
  return made;
}

base::Result<void> UnitJoiner::add(UnitTokens made, ShardWriter& shard) {
  if (made.error) return base::fail(*made.error);
  if (made.unit.begin.inside) {
    ASSAY_TRY_VOID(add_continued(made, shard));
  } else {
    const std::span<const TokenId> tokens = made.tokens;
    for (std::size_t i = 0; i < made.starts.size(); ++i) {
      const std::size_t end = i + 1 < made.starts.size() ? made.starts[i + 1] : tokens.size();
      shard.begin_document();
      ASSAY_TRY_VOID(shard.append(tokens.subspan(made.starts[i], end - made.starts[i])));
    }
    fed_ = made.rest.size();
    ASSAY_TRY_VOID(join_->feed(made.rest, joined_));
  }
  position_ = made.unit.end;
  position_.offset -= pending();
  return {};
}

base::Result<void> UnitJoiner::add_continued(const UnitTokens& made, ShardWriter& shard) {
  std::size_t fed_of_unit = 0;
  std::optional<std::size_t> right_from;  // the unit's tokens are right from here on
  joined_.clear();
  if (join_->pending() == 0) {
    right_from = 0;
  } else {
    const std::string_view head = std::string_view(made.unit.text).substr(0, kHeadBytes);
    ends_.clear();
    join_->watch(&ends_);
    const auto fed = join_->feed(head, joined_);
    join_->watch(nullptr);
    ASSAY_TRY_VOID(fed);
    fed_of_unit = head.size();
    for (const WordEnd& end : ends_) {
      if (end.bytes < fed_) continue;
      right_from = tokens_before(made, end.bytes - fed_);
      if (!right_from) continue;
      joined_.resize(end.tokens);
      break;
    }
  }
  ASSAY_TRY_VOID(shard.append(joined_));
  if (!right_from) return encode_again(made, fed_of_unit, shard);
  ASSAY_TRY_VOID(shard.append(std::span(made.tokens).subspan(*right_from)));
  join_->abandon();
  fed_ = made.rest.size();
  return join_->feed(made.rest, joined_);
}

base::Result<void> UnitJoiner::encode_again(const UnitTokens& made, std::size_t from,
                                            ShardWriter& shard) {
  joined_.clear();
  ASSAY_TRY_VOID(join_->feed(std::string_view(made.unit.text).substr(from), joined_));
  fed_ += made.unit.text.size();
  if (made.unit.ends) {
    ASSAY_TRY_VOID(join_->finish(joined_));
    if (eos_) joined_.push_back(*eos_);
  }
  return shard.append(joined_);
}

}  // namespace assay::data
