// Names of ops, phases, parts and types, an op as a line of text, and what it moves.
#include "step/op.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "step/program.h"

namespace assay::step {
namespace {

template <class E, std::size_t N>
std::string_view name(E value, const std::array<std::string_view, N>& names) {
  return names[static_cast<std::size_t>(value)];
}

std::string shape_of(const View& view, const Program& program) {
  const Buffer& buffer = program.buffers[static_cast<std::size_t>(view.buffer)];
  return fmt::format("{}x{}:{}", view.rows, view.cols, to_text(buffer.type));
}

std::string shapes_of(const std::vector<View>& views, const Program& program) {
  std::string text;
  for (const View& view : views) text += " " + shape_of(view, program);
  return text;
}

}  // namespace

std::string_view to_text(Dtype type) {
  return name(type, std::array<std::string_view, 6>{"f32", "bf16", "u16", "i32", "fp8", "fp16"});
}

std::string_view to_text(Storage storage) {
  return name(storage, std::array<std::string_view, kStorages>{"weights", "remainders", "gradients",
                                                               "moments", "activations", "inputs",
                                                               "scalars", "gathered"});
}

std::string_view to_text(OpKind kind) {
  return name(kind, std::array<std::string_view, 46>{"embed",          "embed_grad",
                                                     "positions_grad", "norm",
                                                     "norm_grad",      "matmul",
                                                     "scale",          "quantise",
                                                     "bias_grad",      "head_norm",
                                                     "head_norm_grad", "rotate",
                                                     "rotate_grad",    "attention",
                                                     "attention_grad", "pack_keys",
                                                     "order_keys",     "split_keys_grad",
                                                     "sum_keys_grad",  "activate",
                                                     "activate_grad",  "route",
                                                     "route_grad",     "sort_rows",
                                                     "gather_rows",    "grouped_matmul",
                                                     "combine_rows",   "arrange_rows",
                                                     "permute_rows",   "loss_terms",
                                                     "loss",           "sum",
                                                     "fold",           "norm_sums",
                                                     "gradient_norm",  "adamw",
                                                     "muon",           "balance",
                                                     "step_sums",      "read",
                                                     "all_gather",     "all_to_all",
                                                     "exchange_rows",  "send",
                                                     "receive",        "wait"});
}

std::string_view to_text(Phase phase) {
  return name(phase,
              std::array<std::string_view, 4>{"forward", "recompute", "backward", "optimizer"});
}

std::string_view to_text(ModelPart part) {
  return name(
      part,
      std::array<std::string_view, 22>{
          "embedding", "positions", "attention_norm", "qkv",         "query_norm", "key_norm",
          "rope",      "attention", "attention_out",  "mlp_norm",    "gate_up",    "activation",
          "down",      "router",    "shared_gate_up", "shared_down", "final_norm", "head",
          "loss",      "decayed",   "undecayed",      "all"});
}

std::string_view to_text(Axis axis) {
  return name(axis, std::array<std::string_view, 12>{
                        "none", "data", "shard", "replica", "tensor", "context", "expert",
                        "expert_data", "expert_shard", "pipeline", "pipeline_back", "world"});
}

std::int64_t Op::exchanged_elements() const {
  if (kind == OpKind::kExchangeRows) return std::min(in[0].elements(), out[0].elements());
  const bool of_result = kind == OpKind::kAllGather || kind == OpKind::kReceive;
  return (of_result ? out[0] : in[0]).elements();
}

std::string to_text(const Op& op, const Program& program) {
  std::string where = op.layer == kNoLayer ? "-" : fmt::format("{}", op.layer);
  std::string flags;
  if (op.transpose_a) flags += " ta";
  if (op.transpose_b) flags += " tb";
  if (op.residual) flags += " residual";
  if (op.bias) flags += " bias";
  if (op.scaled) flags += " scaled";
  if (op.sequences > 1) flags += fmt::format(" {} sequences", op.sequences);
  if (op.first_token > 0) flags += fmt::format(" from token {}", op.first_token);
  if (op.most_rows > 0) flags += fmt::format(" at most {} rows", op.most_rows);
  if (op.adds_losses) flags += " losses";
  if (op.pieces > 1) flags += fmt::format(" {} pieces", op.pieces);
  if (op.is_exchange()) {
    flags += fmt::format(" {} x{}", to_text(op.axis), program.choices.layout.along(op.axis).ranks);
  }
  for (std::size_t i = 0; i < op.out.size(); ++i) {
    if (op.adds_to(i) && op.phase != Phase::kOptimizer) flags += fmt::format(" adds{}", i);
  }
  return fmt::format("{} {} {} {} {}{} ->{}{}", to_text(op.phase), op.micro, where,
                     to_text(op.part), to_text(op.kind), shapes_of(op.in, program),
                     shapes_of(op.out, program), flags);
}

MovedBytes moved_bytes(const Op& op, const std::vector<Buffer>& buffers) {
  const auto row_bytes = [&](const View& view, std::int64_t rows) {
    return rows * view.cols * bytes_of(buffers[static_cast<std::size_t>(view.buffer)].type);
  };
  const auto bytes = [&](const View& view) { return row_bytes(view, view.rows); };
  MovedBytes moved;
  if (op.kind == OpKind::kEmbed) {
    moved = {bytes(op.in[0]), bytes(op.out[0])};
    for (std::size_t i = 1; i < op.in.size(); ++i)
      moved.read += row_bytes(op.in[i], op.out[0].rows);
    return moved;
  }
  if (op.kind == OpKind::kEmbedGrad) {
    const std::int64_t rows = row_bytes(op.out[0], op.in[1].rows);
    return {bytes(op.in[0]) + bytes(op.in[1]) + (op.adds_to(0) ? rows : 0), rows};
  }
  const bool in_place = op.kind == OpKind::kRotate || op.kind == OpKind::kRotateGrad;
  for (const View& view : op.in) moved.read += bytes(view);
  for (std::size_t i = 0; i < op.out.size(); ++i) {
    const std::int64_t result = bytes(op.out[i]);
    moved.written += result;
    if (op.adds_to(i) || in_place) moved.read += result;
  }
  return moved;
}

}  // namespace assay::step
