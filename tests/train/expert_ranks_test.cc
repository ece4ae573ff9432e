// Mixtures whose experts are spread over ranks (layout.ep) train what one rank trains: drawn at
// random, on CPU threads, and the cases at the edges.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <ranges>

#include "comm/local.h"
#include "spec/enum_names.h"
#include "train/cpu/cpu_backend.h"
#include "train/rank_run.h"

namespace assay::train::expert_ranks {
namespace {

using testing::Trained;

// Of a tensor's norm, in fp32: gradients of experts are added up in other groups than on one rank.
constexpr double kTolerance = 1e-5;

struct Drawn {
  spec::ModelSpec model;
  spec::LayoutSpec layout;
  step::Choices choices;
  std::int64_t micros = 1;      // of a step, over all ranks
  std::int64_t favourite = -1;  // every token chooses this expert

  [[nodiscard]] std::string text() const {
    return fmt::format(
        "layers {} (every {}, dense {}) experts {} of {} capacity {} shared {} {}; dp {} fsdp {} "
        "zero {} {} ep {} tp {}{} pp {} x {} {}; sequence {} micros {} recompute {}",
        model.layers, model.moe_every, model.dense_layers, model.experts_per_token, model.experts,
        model.capacity, model.shared_ffn, model.router == spec::Router::kSigmoid ? "sigmoid" : "",
        layout.dp, layout.fsdp, layout.zero, spec::to_text(layout.unit), layout.ep, layout.tp,
        layout.sequence_parallel ? " sp" : "", layout.pp, layout.pp_chunks,
        spec::to_text(layout.pp_schedule), choices.sequence, micros,
        spec::to_text(choices.recompute));
  }
};

struct Moved {
  std::int64_t planned = 0;  // by the lists of all ranks
  std::int64_t sent = 0;     // by what the groups of all ranks counted
  std::int64_t received = 0;
};

// The bias of a sigmoid router decides which experts are chosen, and nothing else.
base::Result<void> prefer(Backend& backend, const step::Program& program, std::int64_t expert) {
  for (const step::Parameter& p : program.model_parameters) {
    if (p.rule != step::UpdateRule::kBalanced) continue;
    const StateTensor tensor = weight_tensor(program, p);
    if (tensor.own.count == 0) continue;
    std::vector<float> bias(static_cast<std::size_t>(p.cols), 0.0F);
    bias[static_cast<std::size_t>(expert)] = 100;
    ASSAY_TRY_VOID(
        backend.write(tensor.view, testing::take_own(tensor, std::as_bytes(std::span(bias)))));
  }
  return {};
}

base::Result<Trained> train(const Drawn& d, const spec::LayoutSpec& layout, std::int64_t steps,
                            Moved* moved = nullptr) {
  Trained trained;
  std::mutex mutex;
  const auto ranks = static_cast<int>(layout.dp * layout.inner_ranks());
  ASSAY_TRY_VOID(comm::run_local(ranks, [&](comm::Communicator& c) -> base::Result<void> {
    step::Choices own = d.choices;
    ASSAY_TRY(own.layout, step::layout_of(layout, c.rank()));
    ASSAY_TRY(const auto groups, RankGroups::make(c, own.layout));
    return testing::run_rank(
        {.model = d.model,
         .choices = own,
         .micros = d.micros,
         .steps = steps,
         .epsilon = 1e-6,
         .clip = 0,  // by a norm that has the rounding errors of experts in it
         .make_backend = [&]() -> base::Result<std::unique_ptr<Backend>> {
           return cpu::make_cpu_backend(1, groups.get());
         },
         .begin =
             [&](Backend& backend, const step::Program& program) {
               return d.favourite < 0 ? base::Result<void>{}
                                      : prefer(backend, program, d.favourite);
             },
         .after_steps = [&](const step::Program& program) -> base::Result<void> {
           if (moved == nullptr) return {};
           const std::lock_guard lock(mutex);
           for (const step::Op& op : program.ops) {
             if (op.kind != step::OpKind::kExchangeRows) continue;
             moved->planned += steps * op.exchanged_elements() * 4;
           }
           moved->sent += groups->rows_moved().sent_bytes;
           moved->received += groups->rows_moved().received_bytes;
           return {};
         }},
        trained, mutex);
  }));
  return trained;
}

std::vector<float> floats_of(const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// The norm of the difference of each gradient, as a share of the gradient's own; first moments are
// gradients after one step. Tensors whose gradients are nothing but rounding errors are measured by
// the largest of all.
std::string first_apart(const Trained& one, const Trained& many) {
  double largest = 0;
  for (const auto& [name, bytes] : one.state) {
    if (name.starts_with("first_moment/")) {
      largest = std::max(largest, testing::norm_of(floats_of(bytes)));
    }
  }
  for (const auto& [name, bytes] : one.state) {
    if (!name.starts_with("first_moment/")) continue;
    std::vector<float> expected = floats_of(bytes);
    const double size = testing::norm_of(expected);
    const auto found = many.state.find(name);
    if (found == many.state.end()) return name + " is missing";
    const std::vector<float> others = floats_of(found->second);
    if (others.size() != expected.size()) return name + " has another size";
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] -= others[i];
    const double away = testing::norm_of(expected);
    if (!(away <= kTolerance * (size + 1e-2 * largest))) {
      return fmt::format("{}: {} away, of {}", name, away, size);
    }
  }
  return many.state.size() == one.state.size() ? "" : "other tensors";
}

// Rows of experts are computed as on one rank, so whatever is no expert's has the same bits.
std::string other_bits(const Trained& one, const Trained& many) {
  for (const auto& [name, bytes] : one.state) {
    const bool of_experts = name.find("expert_") != std::string::npos;
    if (!of_experts && many.state.at(name) != bytes) return name + " has other bits";
  }
  return "";
}

double scalar(const Trained& trained, step::Scalar which) {
  return static_cast<double>(trained.scalars.at(0)[static_cast<std::size_t>(which)]);
}

// One step of the layout, against one rank.
std::string first_difference(const Drawn& d) {
  spec::LayoutSpec alone;
  alone.dp = 1;
  Moved moved;
  const auto one = train(d, alone, 1);
  const auto many = train(d, d.layout, 1, &moved);
  if (!one || !many) return (one ? many : one).error().line();
  if (one->loads != many->loads) return "loads of experts";
  for (const auto which : {step::Scalar::kCount, step::Scalar::kDropped}) {
    if (scalar(*one, which) != scalar(*many, which)) return "counts";
  }
  for (const auto which : {step::Scalar::kLossSum, step::Scalar::kNorm, step::Scalar::kBalanceSum,
                           step::Scalar::kRouterZSum}) {
    const double expected = scalar(*one, which);
    if (std::abs(scalar(*many, which) - expected) > kTolerance * std::abs(expected)) {
      return fmt::format("scalar {}: {} and {}", static_cast<int>(which), scalar(*many, which),
                         expected);
    }
  }
  if (const std::string apart = first_apart(*one, *many); !apart.empty()) return apart;
  if (d.layout.tp == 1) {  // else sums are cut
    if (const std::string bits = other_bits(*one, *many); !bits.empty()) return bits;
    if (scalar(*one, step::Scalar::kLossSum) != scalar(*many, step::Scalar::kLossSum)) {
      return "the loss has other bits";
    }
  }
  // Every row that a rank's tokens have is sent, also to itself; of dropped ones there are none.
  const bool drops = scalar(*one, step::Scalar::kDropped) > 0;
  if (moved.sent != moved.received) return "rows sent and received";
  const bool as_planned =
      d.model.capacity > 0 ? moved.sent <= moved.planned : moved.sent == moved.planned;
  if (!as_planned || (drops && d.model.capacity == 0) || (d.layout.ep > 1 && moved.sent == 0)) {
    return fmt::format("{} bytes of rows were sent, {} planned", moved.sent, moved.planned);
  }
  const auto again = train(d, d.layout, 1);
  if (!again || again->state != many->state) return "the same layout a second time";
  return "";
}

std::int64_t between(std::int64_t least, std::int64_t most) {
  return *rc::gen::inRange<std::int64_t>(least, most + 1);
}

void draw_pipeline(Drawn& d, std::int64_t& accumulate) {
  spec::LayoutSpec& layout = d.layout;
  if (layout.pp == 1) return;
  using spec::PipelineSchedule;
  layout.pp_schedule = *rc::gen::element(PipelineSchedule::kGpipe, PipelineSchedule::k1f1b,
                                         PipelineSchedule::kZbH1, PipelineSchedule::kInterleaved);
  if (layout.pp_schedule != PipelineSchedule::kInterleaved) return;
  layout.pp_schedule = PipelineSchedule::k1f1b;
  if (d.model.layers < 2 * layout.pp) return;
  layout.pp_schedule = PipelineSchedule::kInterleaved;
  layout.pp_chunks = 2;
  accumulate = layout.pp;
}

Drawn drawn() {
  Drawn d;
  spec::LayoutSpec& layout = d.layout;
  layout.ep = *rc::gen::element<std::int64_t>(2, 2, 3, 4);
  layout.fsdp = between(1, 2);
  layout.dp = *rc::gen::element<std::int64_t>(1, 1, 2);
  layout.tp = *rc::gen::element<std::int64_t>(1, 1, 2);
  layout.pp = *rc::gen::element<std::int64_t>(1, 1, 2);
  layout.sequence_parallel = layout.tp > 1 && *rc::gen::arbitrary<bool>();
  layout.zero = between(1, 3);
  layout.unit = *rc::gen::element(spec::ShardUnit::kBlock, spec::ShardUnit::kModule);
  d.model = {.vocab = between(17, 90),
             .dim = 2 * between(4, 10),
             .layers = between(layout.pp, 4),
             .heads = 2 * layout.tp,
             .kv_heads = layout.tp,
             .head_dim = 4,
             .ffn = layout.tp * between(3, 9),
             .context = layout.tp * *rc::gen::element<std::int64_t>(1, 3, 8)};
  d.model.experts = layout.ep * between(1, 3);
  d.model.experts_per_token = between(1, d.model.experts);
  d.model.expert_ffn = layout.tp * between(3, 9);
  d.model.shared_ffn = *rc::gen::element<std::int64_t>(0, layout.tp * 5);
  d.model.moe_every = *rc::gen::element<std::int64_t>(1, 1, 2);
  d.model.dense_layers = *rc::gen::element<std::int64_t>(0, 0, 1);
  d.model.capacity = *rc::gen::element(0.0, 0.0, 1.0);
  d.model.router = *rc::gen::element(spec::Router::kSoftmax, spec::Router::kSigmoid);
  d.model.normalise_router = *rc::gen::arbitrary<bool>();
  d.model.norm =
      *rc::gen::element(spec::Norm::kRmsNorm, spec::Norm::kRmsNormPlain, spec::Norm::kLayerNorm);
  d.model.mlp = *rc::gen::element(spec::Mlp::kSwiglu, spec::Mlp::kGelu, spec::Mlp::kRelu2);
  d.model.tied = *rc::gen::arbitrary<bool>();
  d.choices.sequence = d.model.context;
  d.choices.micro_batch = between(1, 2);
  d.choices.recompute = *rc::gen::element(spec::Recompute::kNone, spec::Recompute::kCheap,
                                          spec::Recompute::kFfn, spec::Recompute::kFull);
  std::int64_t accumulate = between(1, 3);
  draw_pipeline(d, accumulate);
  d.micros = accumulate * layout.dp * layout.fsdp * layout.ep;
  return d;
}

RC_GTEST_PROP(ExpertRanks, TrainWhatOneRankTrains, ()) {
  const Drawn d = drawn();
  RC_PRE(d.layout.dp * d.layout.inner_ranks() <= 16);
  RC_PRE(d.model.moe_layers() > 0);
  RC_LOG() << d.text() << "\n";
  RC_ASSERT(first_difference(d) == "");
}

Drawn example() {
  Drawn d;
  d.model = {.vocab = 61,
             .dim = 16,
             .layers = 2,
             .heads = 2,
             .kv_heads = 1,
             .head_dim = 4,
             .ffn = 12,
             .context = 8,
             .experts = 4,
             .experts_per_token = 2};
  d.model.router = spec::Router::kSigmoid;
  d.layout = {.dp = 1, .fsdp = 2, .zero = 3, .ep = 2};
  d.choices.sequence = 8;
  d.micros = 8;
  return d;
}

// Every row of every rank goes to one: as many as there is room for. The other experts have none.
TEST(ExpertRanks, OneExpertMayTakeAllTokens) {
  Drawn d = example();
  d.model.experts_per_token = 1;
  for (const std::int64_t favourite : {0, 3}) {
    d.favourite = favourite;
    EXPECT_EQ(first_difference(d), "");
    const auto many = train(d, d.layout, 1);
    ASSERT_TRUE(many.has_value()) << many.error().line();
    for (std::size_t i = 0; i < many->loads.size(); ++i) {
      EXPECT_EQ(many->loads[i], i % 4 == static_cast<std::size_t>(favourite) ? 64.0F : 0.0F);
    }
    // What nobody chose has no gradient.
    const std::vector<float> down = floats_of(many->state.at("first_moment/layers.0.expert_down"));
    for (std::size_t i = 0; i < down.size(); ++i) {
      const bool chosen = i / (down.size() / 4) == static_cast<std::size_t>(favourite);
      EXPECT_EQ(down[i] != 0.0F, chosen) << i;
    }
  }
}

TEST(ExpertRanks, EveryTokenMayChooseEveryExpert) {
  Drawn d = example();
  d.model.experts_per_token = 4;
  d.layout = {.dp = 2, .zero = 2, .ep = 4};
  EXPECT_EQ(first_difference(d), "");
}

TEST(ExpertRanks, ASingleTokenIsEnough) {
  Drawn d = example();
  d.model.context = d.choices.sequence = 1;
  d.model.experts_per_token = 1;
  d.layout = {.dp = 1, .ep = 4};
  d.micros = 4;
  EXPECT_EQ(first_difference(d), "");
}

// Whatever a step leaves behind, the next one begins with: several layouts, after some steps.
TEST(ExpertRanks, StayTogetherOverSteps) {
  Drawn d = example();
  d.model.shared_ffn = 6;
  spec::LayoutSpec alone;
  alone.dp = 1;
  const auto one = train(d, alone, 4);
  ASSERT_TRUE(one.has_value());
  for (const spec::LayoutSpec& layout : {spec::LayoutSpec{.dp = 1, .ep = 2},
                                         {.dp = 1, .fsdp = 2, .zero = 1, .ep = 2},
                                         {.dp = 2, .fsdp = 2, .zero = 3, .ep = 2},
                                         {.dp = 1, .zero = 3, .ep = 4},
                                         {.dp = 1, .zero = 3, .pp = 2, .ep = 2}}) {
    const auto many = train(d, layout, 4);
    ASSERT_TRUE(many.has_value()) << many.error().line();
    for (std::size_t i = 0; i < one->scalars.size(); ++i) {
      const auto loss = static_cast<std::size_t>(step::Scalar::kLossSum);
      EXPECT_NEAR(many->scalars[i][loss], one->scalars[i][loss], 1e-5 * one->scalars[i][loss]);
    }
    EXPECT_EQ(many->loads, one->loads);
  }
}

}  // namespace
}  // namespace assay::train::expert_ranks
