// Programs of several ranks: which rank has which part, what is exchanged when, and that a single
// rank exchanges nothing.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "step/memory_plan.h"
#include "step/program.h"

namespace assay::step {
namespace {

spec::ModelSpec narrow() {
  return {.vocab = 100,
          .dim = 24,
          .layers = 3,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 6,
          .ffn = 40,
          .context = 16};
}

Layout among(std::int64_t rank, std::int64_t dp, std::int64_t fsdp, std::int64_t zero,
             spec::ShardUnit unit = spec::ShardUnit::kBlock) {
  return *layout_of({.dp = dp, .fsdp = fsdp, .zero = zero, .unit = unit}, rank);
}

Program of_rank(const Layout& layout, spec::Optimizer optimizer = spec::Optimizer::kAdamw,
                spec::Precision precision = spec::Precision::kFp32) {
  auto program = build(narrow(), {.numerics = numerics_of(precision),
                                  .layout = layout,
                                  .optimizer = optimizer,
                                  .sequence = 16,
                                  .micro_batch = 2,
                                  .accumulate = 2});
  EXPECT_TRUE(program.has_value());
  return *std::move(program);
}

TEST(StepRanks, OneRankExchangesNothing) {
  for (const Op& op : of_rank({}).ops) EXPECT_FALSE(op.is_exchange()) << to_text(op, of_rank({}));
}

constexpr std::int64_t kDrawnSequence = 24;  // which can be shared by two or three

// Any layout that the trainer executes, with as many micro-batches as its schedule needs.
struct Drawn {
  spec::LayoutSpec layout;
  spec::Optimizer optimizer = spec::Optimizer::kAdamw;
  spec::Recompute recompute = spec::Recompute::kNone;
  bool tied = false;
  spec::QkNorm qk_norm = spec::QkNorm::kNone;
  bool bias = false;
  std::int64_t experts = 0;
  std::int64_t shared_ffn = 0;
  spec::Precision precision = spec::Precision::kFp32;

  [[nodiscard]] std::int64_t ranks() const { return layout.dp * layout.inner_ranks(); }
  [[nodiscard]] Program of(std::int64_t rank) const {
    spec::ModelSpec model = narrow();
    // Does not divide evenly by stages and chunks; each chunk has at least one.
    model.layers = std::max<std::int64_t>(5, layout.pp * layout.pp_chunks + 1);
    model.tied = tied;
    model.qk_norm = qk_norm;
    model.bias = bias;
    model.context = kDrawnSequence;
    if (experts > 0) {
      model.experts = experts;
      model.experts_per_token = (experts + 1) / 2;
      model.dense_layers = 1;
      model.moe_every = experts % 4 == 0 ? 2 : 1;
      model.shared_ffn = shared_ffn;
      model.router = spec::Router::kSigmoid;
    }
    auto program = build(model, {.numerics = numerics_of(precision),
                                 .layout = *layout_of(layout, rank),
                                 .recompute = recompute,
                                 .optimizer = optimizer,
                                 .sequence = kDrawnSequence,
                                 .micro_batch = 2,
                                 .accumulate = 2 * layout.pp});
    EXPECT_TRUE(program.has_value());
    return *std::move(program);
  }
};

Drawn drawn() {
  Drawn d;
  d.layout.dp = *rc::gen::inRange(1, 3);
  d.layout.fsdp = *rc::gen::inRange(1, 4);
  d.layout.zero = *rc::gen::inRange(1, 4);
  d.layout.pp = *rc::gen::inRange(1, 5);
  d.layout.tp = *rc::gen::inRange(1, 3);
  d.layout.sequence_parallel = d.layout.tp > 1 && *rc::gen::arbitrary<bool>();
  d.layout.cp = *rc::gen::inRange(1, 4);
  const auto schedule = *rc::gen::inRange(0, 4);
  d.layout.pp_schedule = static_cast<spec::PipelineSchedule>(d.layout.pp > 1 ? schedule : 1);
  if (d.layout.pp_schedule == spec::PipelineSchedule::kInterleaved) {
    d.layout.pp_chunks = *rc::gen::inRange(2, 4);
  }
  if (*rc::gen::arbitrary<bool>()) d.layout.unit = spec::ShardUnit::kModule;
  d.tied = *rc::gen::arbitrary<bool>();
  d.bias = *rc::gen::arbitrary<bool>();
  d.qk_norm = *rc::gen::element(spec::QkNorm::kNone, spec::QkNorm::kPlain, spec::QkNorm::kLearned);
  d.precision = *rc::gen::element(spec::Precision::kFp32, spec::Precision::kFp8);
  d.recompute = static_cast<spec::Recompute>(*rc::gen::inRange(0, 4));
  if (d.recompute == spec::Recompute::kAuto) d.recompute = spec::Recompute::kNone;
  const bool whole = d.layout.zero < 3 || d.layout.fsdp == 1;
  if (whole && d.layout.tp == 1 && *rc::gen::arbitrary<bool>())
    d.optimizer = spec::Optimizer::kMuon;
  if (*rc::gen::inRange(0, 3) == 0) {
    d.layout.ep = *rc::gen::inRange(1, 4);
    d.experts = d.layout.ep * *rc::gen::inRange(1, 5);
    d.shared_ffn = *rc::gen::element(0, 8);
    d.layout.cp = 1;
    d.bias = false;
    d.optimizer = spec::Optimizer::kAdamw;
  }
  return d;
}

// Every exchange is issued once and waited for once, afterwards; in between nothing else touches
// what it writes, and nothing writes what it reads.
RC_GTEST_PROP(StepRanks, ExchangesOwnTheirBuffersUntilTheyAreWaitedFor, ()) {
  const Drawn d = drawn();
  const Program p = d.of(*rc::gen::inRange<std::int64_t>(0, d.ranks()));
  std::map<std::int32_t, const Op*> open;
  std::set<std::int32_t> done;
  const auto overlap = [](const View& a, const View& b) {
    return a.buffer == b.buffer && a.offset < b.offset + (b.rows - 1) * b.stride + b.cols &&
           b.offset < a.offset + (a.rows - 1) * a.stride + a.cols;
  };
  const auto any = [&](const std::vector<View>& list, const std::vector<View>& others) {
    for (const View& a : list) {
      for (const View& b : others) {
        if (overlap(a, b)) return true;
      }
    }
    return false;
  };
  for (const Op& op : p.ops) {
    if (op.kind == OpKind::kWait) {
      RC_ASSERT(open.erase(op.ticket) == 1);
      done.insert(op.ticket);
      continue;
    }
    for (const auto& [ticket, issued] : open) {
      if (any(op.out, issued->in) || any(op.out, issued->out) || any(op.in, issued->out)) {
        RC_FAIL(to_text(op, p) + " while " + to_text(*issued, p));
      }
    }
    if (op.is_exchange()) {
      RC_ASSERT(!done.contains(op.ticket));
      open[op.ticket] = &op;
    }
  }
  RC_ASSERT(open.empty());
}

// The ranks of a group issue its collectives in the same order with matching sizes, and what one
// sends is what the other receives, in order: for the same micro-batch, before the same layer.
RC_GTEST_PROP(StepRanks, AgreeOnWhatTheyExchange, ()) {
  const Drawn d = drawn();
  using Line = std::tuple<OpKind, std::string, std::int64_t>;
  std::map<std::pair<Axis, std::vector<std::int64_t>>, std::vector<Line>> calls;
  using Message = std::tuple<std::int32_t, std::int32_t, std::int64_t>;  // micro, layer, elements
  std::map<std::tuple<Axis, std::int64_t, std::int64_t>, std::vector<Message>> sent, received;
  for (std::int64_t rank = 0; rank < d.ranks(); ++rank) {
    const Program p = d.of(rank);
    const Layout& layout = p.choices.layout;
    std::map<Axis, std::vector<Line>> own;
    for (const Op& op : p.ops) {
      if (!op.is_exchange() || op.kind == OpKind::kWait) continue;
      if (op.kind == OpKind::kSend || op.kind == OpKind::kReceive) {
        const std::int64_t peer = layout.members(op.axis)[static_cast<std::size_t>(op.peer)];
        if (op.kind == OpKind::kSend) {
          sent[{op.axis, rank, peer}].emplace_back(op.micro, op.layer, op.in[0].elements());
        } else {
          received[{op.axis, peer, rank}].emplace_back(op.micro, op.layer, op.out[0].elements());
        }
        continue;
      }
      const bool of_unit = op.unit >= 0;
      own[op.axis].emplace_back(
          op.kind, of_unit ? p.units[static_cast<std::size_t>(op.unit)].name : "",
          of_unit ? p.units[static_cast<std::size_t>(op.unit)].elements : op.in[0].elements());
      if (op.axis == Axis::kContext) {
        const View& all = op.kind == OpKind::kAllToAll ? op.in[0] : op.out[0];
        RC_ASSERT(all.rows == layout.context.ranks * p.micro_tokens());
        RC_ASSERT(op.in[0].elements() == op.out[0].elements() ||
                  op.in[0].elements() * layout.context.ranks == op.out[0].elements());
      }
      if (op.kind != OpKind::kAllToAll || !of_unit) continue;
      const Unit& unit = p.units[static_cast<std::size_t>(op.unit)];
      RC_ASSERT(op.in[0].cols == unit.elements);
      RC_ASSERT(op.out[0].rows == layout.along(op.axis).ranks);
      RC_ASSERT(op.axis == unit.data);
      RC_ASSERT(op.out[0].cols == unit.part.count);
    }
    for (const auto& [axis, lines] : own) {
      const auto [first, is_new] = calls.try_emplace({axis, layout.members(axis)}, lines);
      RC_ASSERT(first->second == lines);
    }
  }
  RC_ASSERT(sent == received);
}

// What an op reads has been written, and no overlapping buffer has been written since; also across
// consecutive steps.
RC_GTEST_PROP(StepRanks, BuffersThatShareMemoryAreNotNeededAtOnce, ()) {
  const Drawn d = drawn();
  const Program p = d.of(*rc::gen::inRange<std::int64_t>(0, d.ranks()));
  const MemoryPlan plan = plan_memory(p);
  std::vector<std::size_t> moving;
  for (std::size_t i = 0; i < p.buffers.size(); ++i) {
    if (p.buffers[i].storage == Storage::kActivations) moving.push_back(i);
  }
  std::vector<bool> valid(p.buffers.size(), true);
  for (const std::size_t i : moving) valid[i] = false;
  std::vector<Op> steps = p.prologue;
  for (int step = 0; step < 2; ++step) steps.insert(steps.end(), p.ops.begin(), p.ops.end());
  for (const Op& op : steps) {
    const auto read = [&](const View& view) {
      if (!valid[static_cast<std::size_t>(view.buffer)]) RC_FAIL(to_text(op, p));
    };
    for (const View& view : op.in) read(view);
    for (std::size_t i = 0; i < op.out.size(); ++i) {
      const auto buffer = static_cast<std::size_t>(op.out[i].buffer);
      if (op.adds_to(i) || op.kind == OpKind::kRotate || op.kind == OpKind::kRotateGrad)
        read(op.out[i]);
      if (p.buffers[buffer].storage != Storage::kActivations) continue;
      for (const std::size_t other : moving) {
        const bool overlaps =
            plan.offset[other] < plan.offset[buffer] + p.buffers[buffer].bytes() &&
            plan.offset[buffer] < plan.offset[other] + p.buffers[other].bytes();
        if (other != buffer && overlaps) valid[other] = false;
      }
      valid[buffer] = true;
    }
  }
}

// Gradients that are added or sent were computed by the unit's own ops of this micro-batch, and
// have not been overwritten since.
RC_GTEST_PROP(StepRanks, WhatIsAddedWasMadeByTheUnit, ()) {
  const Drawn d = drawn();
  const Program p = d.of(*rc::gen::inRange<std::int64_t>(0, d.ranks()));
  struct Made {
    std::int64_t end = 0;
    const Op* by = nullptr;
  };
  std::map<BufferId, std::map<std::int64_t, Made>> made;  // by offset
  for (const Op& op : p.ops) {
    const bool folds = op.kind == OpKind::kFold && op.unit >= 0;  // else it is a copy
    const bool adds =
        (folds && op.in[0].rows == 1) || (op.kind == OpKind::kAllToAll && op.unit >= 0);
    if (adds && op.phase == Phase::kBackward) {
      const bool head = p.buffers[static_cast<std::size_t>(op.in[0].buffer)].name.find(
                            "embedding head grad") != std::string::npos;
      for (const Parameter& parameter : p.parameters) {
        if (parameter.unit != op.unit || p.units[static_cast<std::size_t>(op.unit)].parts.empty())
          continue;
        const auto& here = made[op.in[0].buffer];
        const auto found = here.find(parameter.offset);
        if (op.kind == OpKind::kFold && found == here.end() &&
            p.choices.layout.along(p.units[static_cast<std::size_t>(op.unit)].data).ranks > 1)
          continue;  // received from others
        RC_ASSERT(found != here.end());
        const Op& by = *found->second.by;
        RC_ASSERT(by.micro == op.micro && by.layer == parameter.layer);
        RC_ASSERT(by.part == (head ? ModelPart::kHead : parameter.part));
      }
    }
    if (op.phase != Phase::kBackward || op.is_exchange() || folds) continue;
    for (const View& out : op.out) {
      auto& here = made[out.buffer];
      const std::int64_t end = out.offset + (out.rows - 1) * out.stride + out.cols;
      std::erase_if(here, [&](const auto& entry) {
        return entry.first < end && out.offset < entry.second.end;
      });
      here[out.offset] = {end, &op};
    }
  }
}

RC_GTEST_PROP(StepRanks, EveryElementIsAddedUpByOneRankAndKeptByOneShard, ()) {
  const std::int64_t dp = *rc::gen::inRange(1, 4);
  const std::int64_t fsdp = *rc::gen::inRange(1, 7);
  const std::int64_t cp = *rc::gen::element(1, 2, 4);
  const auto optimizer = *rc::gen::element(spec::Optimizer::kAdamw, spec::Optimizer::kMuon);
  std::map<std::string, std::int64_t> added;
  std::map<std::string, std::int64_t> kept;
  for (std::int64_t rank = 0; rank < dp * fsdp * cp; ++rank) {
    const Program p =
        of_rank(*layout_of({.dp = dp, .fsdp = fsdp, .zero = 2, .cp = cp}, rank), optimizer);
    for (const Unit& unit : p.units) {
      RC_ASSERT(unit.own.common(unit.part) == unit.part);
      std::int64_t end = 0;
      for (const Range& part : unit.parts) {
        RC_ASSERT(part.first == end);
        RC_ASSERT(part.count % norm_block(p.model) == 0);
        end = part.end();
      }
      RC_ASSERT(end == unit.elements);
    }
    for (const Parameter& parameter : p.parameters) {
      const Unit& unit = p.unit_of(parameter);
      const Range all{parameter.offset, parameter.elements()};
      added[parameter.name] += unit.part.common(all).count;
      kept[parameter.name] += unit.own.common(all).count;
      if (parameter.rule != UpdateRule::kMuon) continue;
      const std::int64_t own = unit.own.common(all).count;
      RC_ASSERT(own == 0 || own == parameter.elements());
    }
  }
  for (const Parameter& parameter : of_rank({}, optimizer).parameters) {
    RC_ASSERT(added[parameter.name] == parameter.elements());
    RC_ASSERT(kept[parameter.name] ==
              parameter.elements() * (parameter.rule == UpdateRule::kMuon ? 1 : dp * cp));
  }
}

// Stochastic rounding and sums of squares depend on these.
RC_GTEST_PROP(StepRanks, ElementsAndBlocksOfTheNormDoNotDependOnTheLayout, ()) {
  const auto positions = [](const Program& p) {
    std::map<std::string, std::int64_t> first;
    for (const Parameter& parameter : p.parameters) {
      first[parameter.name] = p.unit_of(parameter).first_element + parameter.offset;
    }
    return first;
  };
  const std::int64_t dp = *rc::gen::inRange(1, 4);
  const std::int64_t fsdp = *rc::gen::inRange(1, 6);
  const auto unit = *rc::gen::element(spec::ShardUnit::kBlock, spec::ShardUnit::kModule);
  RC_ASSERT(positions(of_rank(among(0, dp, fsdp, 3, unit))) == positions(of_rank({})));
}

TEST(StepRanks, UpdateEveryMatrixOfMuonOnce) {
  for (const std::int64_t ranks : {1, 2, 3, 5, 12, 30}) {
    std::map<std::pair<std::int32_t, ModelPart>, int> updates;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      for (const Op& op : of_rank(among(rank, 1, ranks, 2), spec::Optimizer::kMuon).ops) {
        if (op.kind == OpKind::kMuon) ++updates[{op.layer, op.part}];
      }
    }
    EXPECT_EQ(updates.size(), 12U);
    for (const auto& [matrix, times] : updates) EXPECT_EQ(times, 1);
  }
}

TEST(StepRanks, KeepWhatTheirZeroSays) {
  const MemoryPlan one = plan_memory(of_rank({}, {}, spec::Precision::kBf16));
  const auto share = [&](const MemoryPlan& plan, Storage storage) {
    return static_cast<double>(plan.of(storage)) / static_cast<double>(one.of(storage));
  };
  for (const std::int64_t ranks : {2, 4}) {
    for (const std::int64_t zero : {1, 2, 3}) {
      const MemoryPlan plan =
          plan_memory(of_rank(among(1, 1, ranks, zero), {}, spec::Precision::kBf16));
      const double part = 1.0 / static_cast<double>(ranks);
      EXPECT_NEAR(share(plan, Storage::kMoments), part, 0.05);
      EXPECT_NEAR(share(plan, Storage::kRemainders), part, 0.05);
      EXPECT_NEAR(share(plan, Storage::kGradients), part, 0.05);
      EXPECT_NEAR(share(plan, Storage::kWeights), zero == 3 ? part : 1, 0.05);
      EXPECT_EQ(plan.of(Storage::kGathered) > 0, zero == 3);
    }
    const MemoryPlan replica =
        plan_memory(of_rank(among(1, ranks, 1, 3), {}, spec::Precision::kBf16));
    EXPECT_NEAR(share(replica, Storage::kMoments), 1, 0.05);
  }
}

TEST(StepLayout, NumbersRanks) {
  for (const auto& [cp, ep] : {std::pair{1, 1}, {2, 1}, {1, 3}, {2, 2}}) {
    const spec::LayoutSpec spec{.dp = 3, .fsdp = 4, .cp = cp, .ep = ep};
    for (std::int64_t rank = 0; rank < 12 * cp * ep; ++rank) {
      const auto found = layout_of(spec, rank);
      ASSERT_TRUE(found.has_value());
      EXPECT_EQ(found->rank(), rank);
      EXPECT_EQ(found->context.rank, rank % cp);
      EXPECT_EQ(found->expert.rank, rank / cp % ep);
      EXPECT_EQ(found->shard.rank, rank / cp / ep % 4);
      EXPECT_EQ(found->replica.rank, rank / cp / ep / 4);
      EXPECT_EQ(found->members(Axis::kData).size(), static_cast<std::size_t>(12 * cp * ep));
      EXPECT_EQ(found->members(Axis::kShard).size(), static_cast<std::size_t>(4 * ep));
      EXPECT_EQ(found->members(Axis::kExpertData).size(), static_cast<std::size_t>(12 * cp));
      for (const Axis axis : {Axis::kData, Axis::kShard, Axis::kReplica, Axis::kContext,
                              Axis::kExpert, Axis::kExpertData, Axis::kExpertShard, Axis::kWorld}) {
        const std::vector<std::int64_t> members = found->members(axis);
        const AxisPosition place = found->along(axis);
        ASSERT_EQ(static_cast<std::int64_t>(members.size()), place.ranks);
        EXPECT_EQ(members[static_cast<std::size_t>(place.rank)], rank);
        // Every member has this position in the same group.
        for (std::size_t i = 0; i < members.size(); ++i) {
          const Layout other = *layout_of(spec, members[i]);
          EXPECT_EQ(other.members(axis), members);
          EXPECT_EQ(other.along(axis).rank, static_cast<std::int64_t>(i));
        }
      }
    }
  }
}

// For each expert, the ranks that have it are replicas or shards of each other; for everything else
// all ranks are.
RC_GTEST_PROP(StepRanks, ExpertsAreDividedOverRanksAndTheRestOverAll, ()) {
  spec::ModelSpec model = narrow();
  spec::LayoutSpec layout;
  layout.ep = *rc::gen::inRange(2, 4);
  layout.dp = *rc::gen::inRange(1, 3);
  layout.fsdp = *rc::gen::inRange(1, 4);
  layout.zero = *rc::gen::inRange(1, 4);
  layout.tp = *rc::gen::inRange(1, 3);
  model.experts = layout.ep * *rc::gen::inRange(1, 3);
  model.experts_per_token = 1;
  // How often each element of the model's tensor is summed, and kept.
  std::map<std::string, std::vector<int>> added, kept;
  for (std::int64_t rank = 0; rank < layout.dp * layout.inner_ranks(); ++rank) {
    const Program p = *build(model, {.layout = *layout_of(layout, rank), .sequence = 16});
    for (const Parameter& parameter : p.parameters) {
      const Unit& unit = p.unit_of(parameter);
      RC_ASSERT(unit.experts == parameter.of_experts);
      RC_ASSERT(unit.own.common(unit.part) == unit.part);
      const auto count = [&](const Range& range, std::vector<int>& times) {
        times.resize(static_cast<std::size_t>(parameter.whole_rows() * parameter.whole_cols()));
        const Range here = range.common({parameter.offset, parameter.elements()});
        for (const Slice::Runs& runs :
             parameter.slice.runs_of({here.first - parameter.offset, here.count})) {
          for (std::int64_t i = 0; i < runs.count; ++i) {
            ++times[static_cast<std::size_t>(runs.first + i / runs.run * runs.apart +
                                             i % runs.run)];
          }
        }
      };
      count(unit.part, added[parameter.name]);
      count(unit.own, kept[parameter.name]);
    }
  }
  const Program alone = *build(model, {.sequence = 16});
  for (const Parameter& parameter : alone.parameters) {
    const int copies = parameter.slice.cut ? 1 : static_cast<int>(layout.tp);
    for (const int times : added[parameter.name]) RC_ASSERT(times == copies);
    for (const int times : kept[parameter.name]) {
      RC_ASSERT(times == copies * static_cast<int>(layout.dp));
    }
  }
}

TEST(StepLayout, RefusesMuonWhereMatricesAreCut) {
  const auto program = build(
      narrow(), {.layout = among(0, 1, 2, 3), .optimizer = spec::Optimizer::kMuon, .sequence = 16});
  ASSERT_FALSE(program.has_value());
  EXPECT_EQ(program.error().where, "layout.zero");
}

}  // namespace
}  // namespace assay::step
