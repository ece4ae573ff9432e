#include "step/moved_bytes.h"

namespace assay::step {

MovedBytes moved_bytes(const Op& op, const std::vector<Buffer>& buffers) {
  const auto row_bytes = [&](const View& view, std::int64_t rows) {
    return rows * view.cols * bytes_of(buffers[static_cast<std::size_t>(view.buffer)].type);
  };
  const auto bytes = [&](const View& view) { return row_bytes(view, view.rows); };
  MovedBytes moved;
  if (op.kind == Kind::kEmbed) {
    moved = {bytes(op.in[0]), bytes(op.out[0])};
    for (std::size_t i = 1; i < op.in.size(); ++i)
      moved.read += row_bytes(op.in[i], op.out[0].rows);
    return moved;
  }
  if (op.kind == Kind::kEmbedGrad) {
    const std::int64_t rows = row_bytes(op.out[0], op.in[1].rows);
    return {bytes(op.in[0]) + bytes(op.in[1]) + (op.adds_to(0) ? rows : 0), rows};
  }
  const bool in_place = op.kind == Kind::kRotate || op.kind == Kind::kRotateGrad;
  for (const View& view : op.in) moved.read += bytes(view);
  for (std::size_t i = 0; i < op.out.size(); ++i) {
    const std::int64_t result = bytes(op.out[i]);
    moved.written += result;
    if (op.adds_to(i) || in_place) moved.read += result;
  }
  return moved;
}

}  // namespace assay::step
