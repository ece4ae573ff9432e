// After the last block: norm, logits, loss. The logits of all tokens at once would be the largest
// buffer of the step, so they are computed for a part of the tokens at a time and overwritten by
// their gradients before the next part.
#include "step/head.h"

#include <algorithm>
#include <utility>

#include "step/shapes.h"

namespace assay::step {
namespace {

const Parameter& head_of(const Builder& b) {
  const Parameter* head = b.find(ModelPart::kHead);
  return head != nullptr ? *head : *b.find(ModelPart::kEmbedding);
}

// Tensor-parallel ranks have logits of different parts of the vocabulary: gathers each one's terms
// of the loss.
View terms_of_all_ranks(Builder& b, const Op& loss) {
  const AxisPosition& tensor = b.program().choices.layout.tensor;
  const std::int64_t tokens = loss.in[1].rows;
  const View all =
      b.matrix("loss terms", tensor.ranks * tokens, kLossTerms, Dtype::kF32, Storage::kActivations);
  const View own = all.rows_from(tensor.rank * tokens, tokens);
  b.emit({.kind = OpKind::kLossTerms,
          .part = ModelPart::kLoss,
          .in = {loss.in[0], loss.in[1]},
          .out = {own},
          .first_token = loss.first_token});
  b.wait(b.issue({.kind = OpKind::kAllGather,
                  .part = ModelPart::kLoss,
                  .in = {own},
                  .out = {all},
                  .axis = Axis::kTensor}));
  return all;
}

std::int64_t rows_at_a_time(const Program& p, std::int64_t stride) {
  const std::int64_t tokens = p.micro_tokens();
  if (p.choices.purpose == Purpose::kLogits) return tokens;
  if (p.choices.head_rows > 0) return std::min(p.choices.head_rows, tokens);
  return head_rows(tokens, stride);
}

}  // namespace

void build_head(Builder& b, const View& x, const View& targets, const View* dx) {
  Program& p = b.program();
  const spec::ModelSpec& m = b.model();
  const std::int64_t tokens = p.micro_tokens();
  b.enter(Phase::kForward);
  const Parameter* norm = b.find(ModelPart::kFinalNorm, true);
  if (norm != nullptr) b.use(norm->unit);
  const View normed = b.matrix("final_norm", b.stream_rows(), m.dim);
  b.norm(ModelPart::kFinalNorm, x, normed);
  const View h = b.all_tokens(ModelPart::kFinalNorm, "final_norm of all", normed);
  b.use(head_of(b).unit);

  // Padded like the weights: columns beyond the vocabulary belong to no token, and their gradients
  // are zero.
  Parameter head = head_of(b);
  const AxisPosition& tensor = p.choices.layout.tensor;
  const std::int64_t first_token = tensor.rank * (head.rows + head.padding_rows);
  head.rows += std::exchange(head.padding_rows, 0);
  const std::int64_t rows = rows_at_a_time(p, head.rows);
  const View whole = b.matrix("logits", rows, head.rows);
  const View dh = dx != nullptr ? b.matrix("final_norm gradient", b.stream_rows(), m.dim) : View{};
  const View dh_addend = dx != nullptr ? b.addend("final_norm gradient addend", dh) : View{};
  const auto make_part = [&](std::int64_t first, std::int64_t count) {
    const View logits = whole.rows_from(0, count);
    const View part = h.rows_from(first, count);
    b.enter(Phase::kForward);
    b.forward(ModelPart::kHead, part, b.weight(head), logits);
    if (p.choices.purpose == Purpose::kLogits) {
      p.logits = logits.columns(0, m.vocab);
      return;
    }
    Op loss{.kind = OpKind::kLoss, .part = ModelPart::kLoss, .in = {logits}, .out = {logits}};
    loss.out.push_back(p.sums.rows_from(b.micro(), 1));
    loss.in.push_back(targets.rows_from(first, count));
    loss.first_token = first_token;
    if (tensor.ranks > 1) loss.in.push_back(terms_of_all_ranks(b, loss));
    loss.adds = first > 0 ? 2 : 0;
    b.emit(std::move(loss));
    if (dx == nullptr) return;
    b.enter(Phase::kBackward);
    b.weight_gradient(ModelPart::kHead, logits, part, head, first > 0);
    b.input_gradient(ModelPart::kHead, logits, b.weight(head), dh_addend.rows_from(first, count));
  };
  // The first part starts the sums that the others add to, and the last may be smaller.
  make_part(0, std::min(rows, tokens));
  const std::int64_t whole_parts = tokens / rows;
  b.repeat(whole_parts - 1, [&](std::int64_t i) { make_part((i + 1) * rows, rows); });
  if (whole_parts > 0 && tokens % rows > 0) make_part(whole_parts * rows, tokens % rows);
  if (dx == nullptr) return;
  b.enter(Phase::kBackward);
  b.add_up(ModelPart::kHead, dh_addend, dh, nullptr, nullptr);
  if (m.tied) b.finish_gradients(head.unit, true);
  if (norm != nullptr) b.use(norm->unit);
  b.norm_gradient(ModelPart::kFinalNorm, dh, x, nullptr, *dx);
  if (norm != nullptr && norm->unit != head.unit) b.finish_gradients(norm->unit);
  if (!m.tied) b.finish_gradients(head.unit);
}

std::vector<std::int32_t> units_of_head(const Builder& b) {
  const Parameter* norm = b.find(ModelPart::kFinalNorm, true);
  const std::int32_t head = head_of(b).unit;
  if (norm == nullptr) return {head};
  return {norm->unit, head, norm->unit};
}

}  // namespace assay::step
