// Ops read what they should read: programs are executed on hashes instead of numbers, at the
// addresses of their memory plans. Gradients must be made of the same values, by the same ops, for
// every order of a pipeline's passes.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

#include "step/memory_plan.h"
#include "step/program.h"

namespace assay::step {
namespace {

using Hash = std::uint64_t;

Hash mixed(Hash a, Hash b) {
  a = (a ^ (b + 0x9e3779b97f4a7c15ULL + (a << 6U) + (a >> 2U))) * 0xff51afd7ed558ccdULL;
  return a ^ (a >> 33U);
}

class HashedStep {
 public:
  explicit HashedStep(const Program& p) : p_(p), plan_(plan_memory(p)) {
    memory_.resize(static_cast<std::size_t>(plan_.bytes));
    for (std::size_t u = 0; u < p.units.size(); ++u) {
      const Unit& unit = p.units[u];
      write({unit.weights, 0, 1, unit.own.count, unit.own.count}, mixed(1, element_of(unit)));
    }
    for (const Op& op : p.prologue) execute(op);
    for (const Op& op : p.ops) {
      if (op.phase != Phase::kOptimizer) execute(op);
    }
  }

  // Hashes of this rank's sums of gradients, by parameter.
  [[nodiscard]] std::vector<Hash> gradients() const {
    std::vector<Hash> all;
    for (const Parameter& parameter : p_.parameters) {
      const Unit& unit = p_.unit_of(parameter);
      const Range own = unit.part.common({parameter.offset, parameter.elements()});
      const bool elsewhere =
          unit.layer == kNoLayer && unit.stage != p_.choices.layout.pipeline.rank;
      for (const BufferId buffer : {unit.gradients, unit.head_gradients}) {
        const bool made = buffer == unit.gradients ? !elsewhere : p_.choices.layout.last_stage();
        if (buffer >= 0 && made && own.count > 0) all.push_back(read(unit.in_own(buffer, own)));
      }
    }
    return all;
  }

 private:
  static Hash element_of(const Unit& unit) { return static_cast<Hash>(unit.first_element); }

  template <class Visit>
  void each(const View& view, Visit visit) const {
    const std::int64_t size = bytes_of(p_.buffers[static_cast<std::size_t>(view.buffer)].type);
    const std::int64_t start = plan_.offset[static_cast<std::size_t>(view.buffer)];
    for (std::int64_t row = 0; row < view.rows; ++row) {
      for (std::int64_t col = 0; col < view.cols; ++col) {
        visit(start + (view.offset + row * view.stride + col) * size, size);
      }
    }
  }
  [[nodiscard]] Hash read(const View& view) const {
    Hash all = 0;
    each(view, [&](std::int64_t at, std::int64_t) {
      all = mixed(all, memory_[static_cast<std::size_t>(at)]);
    });
    return all;
  }
  // Each element and each byte differs, so that parts of other elements are never a valid value.
  void write(const View& view, Hash value) {
    Hash element = 0;
    each(view, [&](std::int64_t at, std::int64_t size) {
      ++element;
      for (std::int64_t byte = 0; byte < size; ++byte) {
        memory_[static_cast<std::size_t>(at + byte)] =
            mixed(mixed(value, element), static_cast<Hash>(byte));
      }
    });
  }
  [[nodiscard]] std::vector<std::int64_t> places(const View& view) const {
    std::vector<std::int64_t> list;
    each(view, [&](std::int64_t at, std::int64_t) { list.push_back(at); });
    return list;
  }
  // Element by element: the padding of parameters is never written, and may be anything.
  void fold(const Op& op) {
    for (std::int64_t row = 0; row < op.in[0].rows; ++row) {
      const bool copies = row == 0 && !op.adds_to(0);
      const std::vector<std::int64_t> from = places(op.in[0].rows_from(row, 1));
      each(op.out[0], [&, i = std::size_t{0}](std::int64_t at, std::int64_t size) mutable {
        for (std::int64_t byte = 0; byte < size; ++byte) {
          Hash& sum = memory_[static_cast<std::size_t>(at + byte)];
          const Hash addend = memory_[static_cast<std::size_t>(from[i] + byte)];
          sum = copies ? addend : mixed(sum, addend);
        }
        ++i;
      });
    }
  }
  // Treats other ranks' data as this rank's, distinguished by row.
  void all_to_all(const Op& op) {
    const Range& part = p_.units[static_cast<std::size_t>(op.unit)].part;
    const std::vector<std::int64_t> from = places(op.in[0].columns(part.first, part.count));
    for (std::int64_t row = 0; row < op.out[0].rows; ++row) {
      each(op.out[0].rows_from(row, 1),
           [&, i = std::size_t{0}](std::int64_t at, std::int64_t size) mutable {
             for (std::int64_t byte = 0; byte < size; ++byte) {
               memory_[static_cast<std::size_t>(at + byte)] =
                   mixed(memory_[static_cast<std::size_t>(from[i] + byte)], static_cast<Hash>(row));
             }
             ++i;
           });
    }
  }

  void execute(const Op& op) {
    if (op.kind == OpKind::kWait || op.kind == OpKind::kSend) return;
    if (op.kind == OpKind::kFold) return fold(op);
    if (op.kind == OpKind::kAllToAll && op.unit >= 0) return all_to_all(op);
    // Gathered weights stay for the next micro-batch, unless others overwrite them first.
    const std::int32_t micro = op.kind == OpKind::kAllGather && op.unit >= 0 ? 0 : op.micro;
    Hash value = 2;
    for (const int part :
         {static_cast<int>(op.kind), static_cast<int>(op.part), op.layer, micro,
          op.transpose_a ? 1 : 0, op.transpose_b ? 1 : 0, op.scaled ? 1 : 0,
          op.unit < 0
              ? -1
              : static_cast<int>(element_of(p_.units[static_cast<std::size_t>(op.unit)]))}) {
      value = mixed(value, static_cast<Hash>(part + 1));
    }
    const bool adds_apart = op.kind == OpKind::kNormGrad && op.residual;
    for (std::size_t i = 0; i + (adds_apart ? 1 : 0) < op.in.size(); ++i) {
      value = mixed(value, read(op.in[i]));
    }
    std::vector<Hash> results;
    for (std::size_t i = 0; i < op.out.size(); ++i) {
      const bool in_place = op.kind == OpKind::kRotate || op.kind == OpKind::kRotateGrad;
      Hash result = mixed(value, i);
      if (op.adds_to(i) || in_place) result = mixed(result, read(op.out[i]));
      if (i == 0 && adds_apart) result = mixed(result, read(op.in.back()));
      results.push_back(result);
    }
    for (std::size_t i = 0; i < op.out.size(); ++i) write(op.out[i], results[i]);
  }

  const Program& p_;
  MemoryPlan plan_;
  std::vector<Hash> memory_;
};

RC_GTEST_PROP(StepValues, GradientsAreTheSameInEveryScheduleOfAPipeline, ()) {
  spec::ModelSpec model{.vocab = 20,
                        .dim = 8,
                        .layers = 4,
                        .heads = 4,
                        .kv_heads = 2,
                        .head_dim = 2,
                        .ffn = 12,
                        .context = 8};
  model.tied = *rc::gen::arbitrary<bool>();
  model.bias = *rc::gen::arbitrary<bool>();
  model.norm =
      *rc::gen::element(spec::Norm::kRmsNorm, spec::Norm::kRmsNormPlain, spec::Norm::kLayerNorm);
  model.qk_norm =
      *rc::gen::element(spec::QkNorm::kNone, spec::QkNorm::kPlain, spec::QkNorm::kLearned);
  model.mlp = *rc::gen::element(spec::Mlp::kSwiglu, spec::Mlp::kGelu);
  model.positions = *rc::gen::element(spec::Positions::kRope, spec::Positions::kLearned);
  spec::LayoutSpec layout{.dp = *rc::gen::inRange(1, 3), .fsdp = *rc::gen::inRange(1, 3)};
  layout.zero = *rc::gen::inRange(1, 4);
  layout.unit = *rc::gen::element(spec::ShardUnit::kBlock, spec::ShardUnit::kModule);
  layout.pp = *rc::gen::inRange(2, 5);
  layout.tp = *rc::gen::inRange(1, 3);
  layout.sequence_parallel = layout.tp > 1 && *rc::gen::arbitrary<bool>();
  layout.cp = *rc::gen::inRange(1, 3);
  Choices choices{.numerics = numerics_of(*rc::gen::element(
                      spec::Precision::kFp32, spec::Precision::kBf16, spec::Precision::kFp8)),
                  .recompute = *rc::gen::element(spec::Recompute::kNone, spec::Recompute::kCheap,
                                                 spec::Recompute::kFfn, spec::Recompute::kFull),
                  .sequence = 8,
                  .accumulate = *rc::gen::inRange(1, 8)};
  const bool whole = layout.tp == 1 && (layout.zero < 3 || layout.fsdp == 1);
  if (whole && *rc::gen::arbitrary<bool>()) choices.optimizer = spec::Optimizer::kMuon;
  const std::int64_t rank = *rc::gen::inRange<std::int64_t>(0, layout.dp * layout.inner_ranks());
  std::vector<Hash> first;
  for (const auto schedule : {spec::PipelineSchedule::k1f1b, spec::PipelineSchedule::kGpipe,
                              spec::PipelineSchedule::kZbH1}) {
    layout.pp_schedule = schedule;
    choices.layout = *layout_of(layout, rank);
    const auto program = build(model, choices);
    RC_ASSERT(program.has_value());
    const std::vector<Hash> gradients = HashedStep(*program).gradients();
    if (schedule == spec::PipelineSchedule::k1f1b) first = gradients;
    RC_ASSERT(gradients == first);
  }
}

}  // namespace
}  // namespace assay::step
