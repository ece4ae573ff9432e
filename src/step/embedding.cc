// Before the first block: tokens, the table that they are looked up in, and its gradients.
#include "step/embedding.h"

#include <fmt/format.h>

namespace assay::step {
namespace {

// The first token of this rank's part of the table.
std::int64_t first_token(const Builder& b) {
  const Parameter& table = *b.find(ModelPart::kEmbedding);
  return b.program().choices.layout.tensor.rank * (table.rows + table.padding_rows);
}

}  // namespace

Inputs read_inputs(Builder& b, const InputPlace& place) {
  const Choices& choices = b.program().choices;
  const std::int64_t tokens = b.program().micro_tokens();
  const auto integers = [&](const std::string& what) {
    const View view = b.shared(fmt::format("{}, slot {}", what, place.slot), tokens, Dtype::kI32,
                               Storage::kInputs);
    return View{view.buffer, 0, tokens, 1, 1};
  };
  Inputs in;
  Op op{.kind = OpKind::kRead, .part = place.first ? ModelPart::kEmbedding : ModelPart::kLoss};
  if (place.first) op.out.push_back(in.tokens = integers("tokens"));
  if (place.last && choices.purpose != Purpose::kLogits) {
    op.out.push_back(in.targets = integers("targets"));
  }
  if (choices.document_mask) {
    op.documents = true;
    op.out.push_back(in.documents = integers(fmt::format("documents, chunk {}", place.chunk)));
  }
  if (!op.out.empty()) b.emit(std::move(op));
  return in;
}

void embed(Builder& b, const View& tokens, const View& x) {
  const Parameter* positions = b.find(ModelPart::kPositions);
  b.use(b.find(ModelPart::kEmbedding)->unit);
  if (positions != nullptr) b.use(positions->unit);
  const View addend = b.addend("embedding addend", x);
  Op op{.kind = OpKind::kEmbed,
        .part = ModelPart::kEmbedding,
        .in = {tokens, b.weight(ModelPart::kEmbedding)},
        .out = {addend},
        .first_token = first_token(b)};
  // Only one of the tensor-parallel ranks adds the positions.
  const bool adds_positions = b.program().choices.layout.tensor.rank == 0;
  if (positions != nullptr && adds_positions) op.in.push_back(b.weight(*positions));
  b.emit(std::move(op));
  b.add_up(ModelPart::kEmbedding, addend, x, nullptr, nullptr);
}

void table_gradients(Builder& b, const View& tokens, const View& dx) {
  const Parameter& table = *b.find(ModelPart::kEmbedding);
  const View of_all = b.all_tokens(ModelPart::kEmbedding, "gradient of all", dx);
  b.emit({.kind = OpKind::kEmbedGrad,
          .part = ModelPart::kEmbedding,
          .in = {tokens, of_all},
          .out = {b.gradient(table)},
          .first_token = first_token(b)});
  b.finish_gradients(table.unit);
  if (const Parameter* positions = b.find(ModelPart::kPositions)) {
    b.emit({.kind = OpKind::kPositionsGrad,
            .part = ModelPart::kPositions,
            .in = {of_all},
            .out = {b.gradient(*positions)}});
    b.finish_gradients(positions->unit);
  }
}

std::vector<std::int32_t> units_of_tables(const Builder& b) {
  const Parameter* positions = b.find(ModelPart::kPositions);
  const std::int32_t table = b.find(ModelPart::kEmbedding)->unit;
  if (positions == nullptr) return {table};
  return {table, positions->unit};
}

}  // namespace assay::step
