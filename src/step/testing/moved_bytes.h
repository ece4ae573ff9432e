// What an op of a program reads and writes, counted as an outline does: operands once, results
// once, and once more where they are added to or changed in place; of tables that are looked up,
// the rows.
#pragma once

#include "step/program.h"

namespace assay::step::testing {

inline double moved_bytes(const Op& op, const Program& p) {
  const auto bytes = [&](const View& view) { return static_cast<double>(p.bytes_of(view)); };
  if (op.kind == Kind::kEmbed) {
    const View& x = op.out[0];
    double sum = bytes(op.in[0]) + bytes(x);
    for (std::size_t i = 1; i < op.in.size(); ++i) {
      View rows = op.in[i];
      rows.rows = x.rows;
      sum += bytes(rows);
    }
    return sum;
  }
  if (op.kind == Kind::kEmbedGrad) {
    View rows = op.out[0];
    rows.rows = op.in[1].rows;
    return bytes(op.in[0]) + bytes(op.in[1]) + bytes(rows) * (op.adds_to(0) ? 2 : 1);
  }
  const bool in_place = op.kind == Kind::kRotate || op.kind == Kind::kRotateGrad;
  double sum = 0;
  for (const View& view : op.in) sum += bytes(view);
  for (std::size_t i = 0; i < op.out.size(); ++i) {
    sum += bytes(op.out[i]) * (op.adds_to(i) || in_place ? 2 : 1);
  }
  return sum;
}

}  // namespace assay::step::testing
