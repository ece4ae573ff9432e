// Token and position embeddings. Gradients are summed token by token within each column, so
// work is divided by columns.
#include <algorithm>

#include "train/cpu/kernels.h"

namespace assay::train::cpu {
namespace {

constexpr std::int64_t kTokenRows = 64;
constexpr std::int64_t kColumns = 32;

}  // namespace

void embed(Device& device, Tokens tokens, std::int64_t first_token, Matrix table, Matrix positions,
           const step::SequencePart& part, Matrix x) {
  device.executed(step::OpKind::kEmbed, {tokens, table, positions}, {x});
  device.ranges(x.rows, kTokenRows, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) {
      const std::int64_t row = tokens[t] - first_token;
      float* to = x.row(t);
      std::fill_n(to, x.cols, 0.0F);
      if (row >= 0 && row < table.rows) std::copy_n(table.row(row), x.cols, to);
      if (positions.empty()) continue;
      const float* position = positions.row(part.position(t));
      for (std::int64_t i = 0; i < x.cols; ++i) to[i] += position[i];
    }
  });
}

void embed_grad(Device& device, Tokens tokens, std::int64_t first_token, Matrix dx, Matrix dtable,
                bool adds) {
  device.executed(step::OpKind::kEmbedGrad, {tokens, dx}, {dtable});
  device.ranges(dx.cols, kColumns, [&](std::int64_t first, std::int64_t last) {
    if (!adds) {
      for (std::int64_t v = 0; v < dtable.rows; ++v) {
        std::fill(dtable.row(v) + first, dtable.row(v) + last, 0.0F);
      }
    }
    for (std::int64_t t = 0; t < dx.rows; ++t) {
      const std::int64_t row = tokens[t] - first_token;
      if (row < 0 || row >= dtable.rows) continue;
      const float* from = dx.row(t);
      float* to = dtable.row(row);
      for (std::int64_t i = first; i < last; ++i) to[i] += from[i];
    }
  });
}

void positions_grad(Device& device, Matrix dx, const step::SequencePart& part, Matrix dpositions,
                    bool adds) {
  device.executed(step::OpKind::kPositionsGrad, {dx}, {dpositions});
  device.ranges(dpositions.rows, 1, [&](std::int64_t position, std::int64_t) {
    float* to = dpositions.row(position);
    if (!adds) std::fill_n(to, dpositions.cols, 0.0F);
    const std::int64_t row = part.row_of(position);
    for (std::int64_t t = row; row >= 0 && t < dx.rows; t += part.tokens) {
      const float* from = dx.row(t);
      for (std::int64_t i = 0; i < dx.cols; ++i) to[i] += from[i];
    }
  });
}

}  // namespace assay::train::cpu
