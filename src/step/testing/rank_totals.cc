#include "step/testing/rank_totals.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "step/builder.h"
#include "step/embedding.h"
#include "step/optimizer.h"
#include "step/passes.h"
#include "step/recompute.h"
#include "step/rules.h"
#include "step/totals_sink.h"

namespace assay::step::testing {

// The exchange of parameters and gradients of all micro-batches, into a sink that does not unroll.
class ExchangeTotals {
 public:
  explicit ExchangeTotals(Builder& builder) : b_(builder), p_(builder.program()) {}

  void gathers(const std::vector<Pass>& passes) {
    if (!p_.choices.layout.gathers_weights()) return;
    std::vector<std::pair<std::int32_t, std::vector<std::int32_t>>> uses;  // by micro-batch
    for (const Pass& pass : passes) uses.emplace_back(pass.micro, units_of_pass(b_, pass));
    for (const auto& [micro, units] : uses) {
      for (const std::int32_t index : units) {
        if (b_.unit(index).gathered) b_.gather_order_.plan(index, micro);
      }
    }
    std::vector<std::int64_t> gathers(p_.units.size());
    const auto count = [&](const GatherOrder::Use& use) {
      ++gathers[static_cast<std::size_t>(use.unit)];
    };
    b_.gather_order_.begin_with_gathered();  // what the optimizer gathers for the next step
    for (const auto& [micro, units] : uses) {
      for (const std::int32_t index : units) {
        if (b_.unit(index).gathered) b_.gather_order_.use(index, micro, count);
      }
    }
    b_.enter(Phase::kForward);
    for (std::size_t i = 0; i < gathers.size(); ++i) {
      b_.set_repeats({.micros = gathers[i]});
      if (gathers[i] > 0) b_.issue_gather({static_cast<std::int32_t>(i), 0});
    }
  }

  // Each unit once per micro-batch; the first micro-batch starts the sums.
  void gradients(std::int64_t micros) {
    const Layout& layout = p_.choices.layout;
    for (const bool first : {true, false}) {
      const std::int64_t times = first ? 1 : micros - 1;
      b_.begin_pass(first ? 0 : 1, 0);
      b_.enter(Phase::kBackward);
      b_.set_repeats({.micros = times});
      if (times == 0) continue;
      for (std::size_t i = 0; i < p_.units.size(); ++i) {
        const auto index = static_cast<std::int32_t>(i);
        // A table that is also the head: the first stage looks tokens up in it, the last computes
        // logits.
        const bool is_table = p_.units[i].head_gradients >= 0;
        if (!is_table || layout.first_stage()) b_.exchange_gradients(index, false);
        if (is_table && layout.last_stage()) b_.exchange_gradients(index, true);
      }
      b_.finish_exchanges();
    }
  }

 private:
  Builder& b_;
  const Program& p_;
};

namespace {

bool recomputes(const Program& p, std::int32_t layer) {
  return p.choices.recompute != spec::Recompute::kNone && recomputes_layer(layer, p.model.layers);
}

class RankWalk {
 public:
  RankWalk(Program& p, Sink& sink) : p_(p), layout_(p.choices.layout), b_(p, sink) {
    add_scalars(b_);
    set_documents(b_);
  }

  void walk() {
    for (const BlockKind& kind : block_kinds()) emit_block(b_, kind);
    for (std::int32_t chunk = 0; chunk < layout_.chunks; ++chunk) emit_ends(chunk);
    ExchangeTotals exchange(b_);
    exchange.gathers(passes_of(layout_, p_.choices.accumulate, true));
    exchange.gradients(p_.choices.accumulate);
    b_.begin_pass(0, 0);
    b_.set_repeats({});
    build_optimizer(b_);
  }

 private:
  [[nodiscard]] Chunk chunk(std::int32_t index) const {
    return chunk_of(layout_, p_.model.layers, index);
  }

  // Layers differ in their kind and in how much of them is kept; and the first one in its last
  // backward pass (Passes::is_last_of_step).
  [[nodiscard]] std::vector<BlockKind> block_kinds() const {
    std::vector<BlockKind> kinds;
    bool has_mixture = false;
    for (std::int32_t i = 0; i < layout_.chunks; ++i) {
      const Layers range = chunk(i).layers;
      for (std::int32_t layer = range.first; layer < range.end; ++layer) {
        add_layer(layer, kinds, has_mixture);
      }
    }
    return kinds;
  }

  void add_layer(std::int32_t layer, std::vector<BlockKind>& kinds, bool& has_mixture) const {
    const std::int64_t micros = p_.choices.accumulate;
    const bool mixture = p_.model.is_moe_layer(layer);
    const bool begins = mixture && !std::exchange(has_mixture, has_mixture || mixture);
    const bool defers = defers_weight_gradients(layout_);
    const bool one_rank = layout_.data().ranks == 1;
    const bool reordered = layer == 0 && !one_rank && !b_.shares_sequences() && !defers;
    const auto add = [&](std::int32_t micro, std::int64_t times, bool deferred) {
      if (times == 0) return;
      const auto same = std::find_if(kinds.begin(), kinds.end(), [&](const BlockKind& known) {
        return !begins && known.micro == micro && known.defers == deferred &&
               known.repeats.micros == times && p_.model.is_moe_layer(known.layer) == mixture &&
               recomputes(p_, known.layer) == recomputes(p_, layer);
      });
      if (same != kinds.end()) {
        ++same->repeats.layers;
        return;
      }
      kinds.push_back({layer, micro, {1, times, begins, micro == 0}, deferred});
    };
    // In the first micro-batch of a single rank, gradients need no buffer besides the sums.
    if (defers && one_rank) {
      add(0, 1, true);
      add(1, micros - 1, true);
    } else if (reordered) {
      add(0, micros - 1, false);
      // The last micro-batch, which may also be the first.
      add(static_cast<std::int32_t>(micros - 1), 1, true);
    } else {
      add(0, micros, defers);
    }
  }

  void emit_ends(std::int32_t index) {
    const Chunk at = chunk(index);
    const View stream = b_.matrix({}, b_.stream_rows(), b_.shape().dim);
    b_.begin_pass(0, 0);
    b_.set_repeats({.micros = p_.choices.accumulate});
    b_.enter(Phase::kForward);
    const Inputs in = read_inputs(b_, {index, 0, at.first, at.last});
    if (at.first) emit_first(b_, in.tokens);
    if (at.last) emit_last(b_, in.targets);
    b_.enter(Phase::kForward);
    if (!at.first) receive_stream(b_, Pass::Direction::kForward, stream);
    if (!at.last) send_stream(b_, Pass::Direction::kForward, stream);
    b_.enter(Phase::kBackward);
    if (!at.last) receive_stream(b_, Pass::Direction::kBackward, stream);
    if (!at.first) send_stream(b_, Pass::Direction::kBackward, stream);
  }

  Program& p_;
  const Layout& layout_;
  Builder b_;
};

}  // namespace

base::Result<Totals> totals_of(const spec::ModelSpec& model, const Choices& choices) {
  ASSAY_TRY_VOID(check(model, choices));
  Program p;
  p.model = model;
  p.choices = choices;
  TotalsSink sink(p.choices.layout);
  add_state(p, sink);
  RankWalk(p, sink).walk();
  return sink.take();
}

}  // namespace assay::step::testing
