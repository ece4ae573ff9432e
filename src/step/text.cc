// Names of ops, phases, parts and types, and an op as a line of text.
#include <fmt/format.h>

#include <array>

#include "step/op.h"
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

std::string_view to_text(Kind kind) {
  return name(kind,
              std::array<std::string_view, 43>{"embed",         "embed_grad",     "positions_grad",
                                               "norm",          "norm_grad",      "matmul",
                                               "scale",         "quantise",       "bias_grad",
                                               "head_norm",     "head_norm_grad", "rotate",
                                               "rotate_grad",   "attention",      "attention_grad",
                                               "pack_keys",     "order_keys",     "split_keys_grad",
                                               "sum_keys_grad", "activate",       "activate_grad",
                                               "route",         "route_grad",     "sort_rows",
                                               "gather_rows",   "grouped_matmul", "combine_rows",
                                               "loss_terms",    "loss",           "sum",
                                               "fold",          "norm_sums",      "gradient_norm",
                                               "adamw",         "muon",           "balance",
                                               "step_sums",     "read",           "all_gather",
                                               "all_to_all",    "send",           "receive",
                                               "wait"});
}

std::string_view to_text(Phase phase) {
  return name(phase,
              std::array<std::string_view, 4>{"forward", "recompute", "backward", "optimizer"});
}

std::string_view to_text(Part part) {
  return name(
      part,
      std::array<std::string_view, 23>{
          "embedding", "positions", "attention_norm", "qkv",         "query_norm", "key_norm",
          "rope",      "attention", "attention_out",  "mlp_norm",    "gate_up",    "activation",
          "down",      "router",    "shared_gate_up", "shared_down", "final_norm", "head",
          "loss",      "matrices",  "decayed",        "undecayed",   "all"});
}

std::string_view to_text(Axis axis) {
  return name(axis, std::array<std::string_view, 10>{"none", "data", "shard", "replica", "tensor",
                                                     "context", "expert", "pipeline",
                                                     "pipeline_back", "world"});
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

}  // namespace assay::step
