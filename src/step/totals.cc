// One block of each distinct kind is built, and what is before and after the blocks; passes.cc
// emits all of them, one by one.
#include "step/totals.h"

#include <vector>

#include "step/builder.h"
#include "step/embedding.h"
#include "step/parameter.h"
#include "step/passes.h"
#include "step/totals_sink.h"

namespace assay::step {

bool CountedOp::same_but_count(const CountedOp& other) const {
  return kind == other.kind && phase == other.phase && part == other.part && read == other.read &&
         written == other.written && m == other.m && n == other.n && k == other.k &&
         type == other.type && groups == other.groups && groups_share_k == other.groups_share_k &&
         flops == other.flops;
}

double Totals::flops() const {
  double sum = 0;
  for (const CountedOp& op : ops) sum += op.flops * static_cast<double>(op.count);
  return sum;
}

MicroTotals micro_totals(const spec::ModelSpec& model, const Choices& choices) {
  Program p;
  p.model = model;
  p.choices = choices;
  // One of each kind; if there are others, not the last layer, which recomputes nothing.
  std::vector<std::int32_t> layers;
  for (const bool mixture : {false, true}) {
    for (std::int32_t layer = 0; layer < model.layers; ++layer) {
      if (model.is_moe_layer(layer) != mixture) continue;
      layers.push_back(layer);
      break;
    }
  }
  p.parameters = list_parameters(model, choices.optimizer, choices.layout, layers);
  TotalsSink sink(p.choices.layout, true);
  Builder b(p, sink);
  add_scalars(b);
  set_documents(b);
  MicroTotals totals;
  for (const std::int32_t layer : layers) {
    emit_block(b, {.layer = layer});
    (model.is_moe_layer(layer) ? totals.mixture : totals.dense) = sink.take();
  }
  b.begin_pass(0, 0);
  b.set_repeats({});
  b.enter(Phase::kForward);
  const Inputs in = read_inputs(b, {.first = true, .last = true});
  emit_first(b, in.tokens);
  totals.first = sink.take();
  emit_last(b, in.targets);
  totals.last = sink.take();
  return totals;
}

}  // namespace assay::step
