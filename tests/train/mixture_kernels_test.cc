// The kernels of mixtures on a GPU against a CPU's, which are the reference: choices, counts and
// orders to the last one, numbers within their rounding, and the same bits twice. Routings are
// drawn, and as bad as they can be: everything to one expert, experts without tokens, all experts
// for every token, ties, one token, few places.
#include "train/mixture_kernels.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <set>

#include "train/cuda/expert_rows.h"

namespace assay::train::mixture_test {
namespace {

enum class Pattern { kRandom, kOneTakesAll, kHalfEmpty, kTies, kExtreme };

struct Case {
  std::int64_t tokens = 0;
  std::int64_t experts = 0;
  std::int64_t per_token = 0;
  Pattern pattern = Pattern::kRandom;
  spec::Router router = spec::Router::kSoftmax;
  bool normalise = true;
  double capacity = 0;

  [[nodiscard]] std::int64_t slots() const { return tokens * per_token; }
  [[nodiscard]] std::int64_t most_rows() const {
    if (capacity == 0) return tokens;
    return std::max<std::int64_t>(
        1, static_cast<std::int64_t>(capacity * static_cast<double>(slots()) /
                                     static_cast<double>(experts)));
  }
  [[nodiscard]] std::int64_t rows() const { return std::min(slots(), experts * most_rows()); }
};

std::vector<Case> cases() {
  std::vector<Case> list = {
      {.tokens = 1, .experts = 1, .per_token = 1},
      {.tokens = 1, .experts = 8, .per_token = 2},
      {.tokens = 1, .experts = 512, .per_token = 512},
      {.tokens = 77, .experts = 33, .per_token = 33},
      {.tokens = 1000, .experts = 8, .per_token = 2, .pattern = Pattern::kOneTakesAll},
      {.tokens = 1000, .experts = 8, .per_token = 1, .pattern = Pattern::kOneTakesAll},
      {.tokens = 513, .experts = 64, .per_token = 6, .pattern = Pattern::kHalfEmpty},
      {.tokens = 3000, .experts = 5, .per_token = 2, .pattern = Pattern::kTies},
      {.tokens = 640, .experts = 100, .per_token = 8, .pattern = Pattern::kTies, .capacity = 0.5},
      {.tokens = 999,
       .experts = 8,
       .per_token = 2,
       .pattern = Pattern::kOneTakesAll,
       .capacity = 1},
      {.tokens = 4096, .experts = 512, .per_token = 8},
      {.tokens = 257, .experts = 300, .per_token = 40, .capacity = 0.7},
      {.tokens = 512, .experts = 16, .per_token = 4, .pattern = Pattern::kExtreme},
  };
  std::mt19937 random(3);
  const auto upto = [&](std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(1, most)(random);
  };
  for (int i = 0; i < 40; ++i) {
    Case drawn{.tokens = upto(1500), .experts = upto(i % 4 == 0 ? 512 : 70)};
    drawn.per_token = std::min(drawn.experts, upto(i % 5 == 0 ? drawn.experts : 8));
    drawn.pattern = static_cast<Pattern>(upto(5) - 1);
    drawn.capacity = i % 3 == 0 ? 0.3 * static_cast<double>(upto(5)) : 0;
    list.push_back(drawn);
  }
  std::vector<Case> all;
  for (const Case& one : list) {
    for (const bool normalise : {true, false}) {
      for (const auto router : {spec::Router::kSoftmax, spec::Router::kSigmoid}) {
        all.push_back(one);
        all.back().router = router;
        all.back().normalise = normalise;
      }
    }
  }
  return all;
}

Floats logits_of(const Case& c, std::mt19937& random) {
  std::normal_distribution<float> normal;
  Floats logits(static_cast<std::size_t>(c.tokens * c.experts));
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const auto expert = static_cast<std::int64_t>(i) % c.experts;
    float x = 2 * normal(random);
    if (c.pattern == Pattern::kOneTakesAll && expert == c.experts / 2) x += 40;
    if (c.pattern == Pattern::kHalfEmpty && expert % 2 == 1) x -= 40;
    if (c.pattern == Pattern::kTies) x = std::round(x);
    if (c.pattern == Pattern::kExtreme) x *= c.router == spec::Router::kSoftmax ? 300 : 10;
    logits[i] = x;
  }
  return logits;
}

std::string described(const Case& c) {
  return std::to_string(c.tokens) + " tokens, " + std::to_string(c.per_token) + " of " +
         std::to_string(c.experts) + " experts, pattern " +
         std::to_string(static_cast<int>(c.pattern)) + ", capacity " + std::to_string(c.capacity) +
         (c.router == spec::Router::kSigmoid ? ", sigmoid" : ", softmax") +
         (c.normalise ? ", normalised" : "");
}

void expect_near(const Floats& found, const Floats& expected, double relative, double absolute,
                 const char* what) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto x = static_cast<double>(expected[i]);
    ASSERT_NEAR(static_cast<double>(found[i]), x, relative * std::abs(x) + absolute)
        << what << " " << i;
  }
}

constexpr double kHalfRounding = 1.0 / 256;  // of bf16, ties either way

TEST_F(MixtureKernels, RouteAndSortAsTheReferenceDoes) {
  std::mt19937 random(5);
  for (const Case& c : cases()) {
    SCOPED_TRACE(described(c));
    const auto slots = static_cast<std::size_t>(c.slots());
    const auto experts = static_cast<std::size_t>(c.experts);
    const bool sigmoid = c.router == spec::Router::kSigmoid;
    Floats logits = logits_of(c, random);
    std::normal_distribution<float> normal;
    Floats bias(sigmoid ? experts : 0);
    for (float& b : bias) b = 0.1F * normal(random);
    bias = floats_of(halves_of(bias));

    Floats weights(slots);
    Floats counts(experts);
    Floats sums = {1, 2, 3};
    Floats loads(experts, 5);
    Ints chosen(slots);
    Ints rows(slots);
    Ints of_rows(static_cast<std::size_t>(c.rows()));
    Ints first_rows(experts + 1);
    Ints row_counts(experts);
    const cpu::Routing routing{c.router, c.normalise, 1.5, c.most_rows(), 1};
    cpu::route(reference_, routing, on_cpu(logits, c.tokens),
               bias.empty() ? cpu::Matrix{} : on_cpu(bias, 1), on_cpu(weights, c.tokens),
               on_cpu(chosen, c.tokens), on_cpu(counts, 1), on_cpu(sums, 1), true, on_cpu(loads, 1),
               true);
    cpu::sort_rows(reference_, c.most_rows(), on_cpu(chosen, c.tokens), on_cpu(rows, c.tokens),
                   on_cpu(of_rows, c.rows()), on_cpu(first_rows, 1), on_cpu(row_counts, 1));

    const OnDevice<float> gpu_logits(logits);
    const OnDevice<std::uint16_t> gpu_bias(halves_of(bias));
    const cuda::Routing gpu_routing{c.router, c.normalise, 1.5, c.most_rows(), 1};
    std::vector<Floats> bits;
    for (int turn = 0; turn < 2; ++turn) {
      const OnDevice<float> gpu_weights(slots);
      const OnDevice<std::int32_t> gpu_chosen(slots);
      const OnDevice<float> gpu_counts(experts);
      const OnDevice<float> gpu_sums(Floats{1, 2, 3});
      const OnDevice<float> gpu_loads(Floats(experts, 5));
      cuda::route(device_, gpu_routing, gpu_logits.matrix(c.tokens),
                  bias.empty() ? cuda::Matrix{} : gpu_bias.matrix(1), gpu_weights.matrix(c.tokens),
                  gpu_chosen.matrix(c.tokens), gpu_counts.matrix(1), gpu_sums.matrix(1), true,
                  gpu_loads.matrix(1), true);
      ASSERT_EQ(gpu_chosen.get(), chosen);
      ASSERT_EQ(gpu_counts.get(), counts);
      EXPECT_EQ(gpu_loads.get(), loads);
      expect_near(gpu_weights.get(), weights, 1e-6, 1e-30, "weight");
      expect_near(gpu_sums.get(), sums, 1e-6, 0, "sum");
      if (turn == 0) bits = {gpu_weights.get(), gpu_sums.get()};
      EXPECT_EQ(bits, (std::vector{gpu_weights.get(), gpu_sums.get()}));

      const OnDevice<std::int32_t> gpu_rows(slots);
      const OnDevice<std::int32_t> gpu_of_rows(static_cast<std::size_t>(c.rows()));
      const OnDevice<std::int32_t> gpu_first(experts + 1);
      const OnDevice<std::int32_t> gpu_row_counts(experts);
      std::int32_t* on_host = nullptr;
      ASSERT_EQ(
          cudaHostAlloc(reinterpret_cast<void**>(&on_host), 4 * (experts + 1), cudaHostAllocMapped),
          cudaSuccess);
      cuda::sort_rows(device_, c.most_rows(), gpu_chosen.matrix(c.tokens),
                      gpu_rows.matrix(c.tokens), gpu_of_rows.matrix(c.rows()), gpu_first.matrix(1),
                      gpu_row_counts.matrix(1), on_host);
      EXPECT_EQ(gpu_first.get(), first_rows);
      EXPECT_EQ(gpu_row_counts.get(), row_counts);
      EXPECT_EQ(Ints(on_host, on_host + experts + 1), first_rows);
      cudaFreeHost(on_host);
      ASSERT_EQ(gpu_rows.get(), rows);
      ASSERT_EQ(gpu_of_rows.get(), of_rows);
    }
    // Independent of the reference: slots and rows are each other's inverse.
    std::set<std::int32_t> used;
    for (std::size_t i = 0; i < slots; ++i) {
      if (rows[i] < 0) continue;
      EXPECT_TRUE(used.insert(rows[i]).second);
      EXPECT_EQ(of_rows[static_cast<std::size_t>(rows[i])], static_cast<std::int32_t>(i));
    }
    EXPECT_EQ(static_cast<std::int32_t>(used.size()), first_rows.back());

    // The gradient, of losses too. dweights of dropped slots are never read.
    Floats dweights(slots);
    for (float& d : dweights) d = normal(random);
    for (std::size_t i = 0; i < slots; ++i) {
      if (rows[i] < 0) dweights[i] = std::nanf("");
    }
    Floats dlogits(logits.size());
    Floats dbias(bias.size());
    const StepSettings settings{.balance_loss = 0.5, .router_z_loss = 0.25};
    cpu::Routing with_tokens = routing;
    cuda::Routing gpu_with_tokens = gpu_routing;
    with_tokens.step_tokens = gpu_with_tokens.step_tokens = static_cast<double>(c.tokens) * 2;
    cpu::route_grad(reference_, with_tokens, settings, true, on_cpu(logits, c.tokens),
                    on_cpu(weights, c.tokens), on_cpu(chosen, c.tokens), on_cpu(rows, c.tokens),
                    on_cpu(counts, 1), on_cpu(dweights, c.tokens), on_cpu(dlogits, c.tokens),
                    dbias.empty() ? cpu::Matrix{} : on_cpu(dbias, 1));
    const OnDevice<float> gpu_weights(weights);
    const OnDevice<std::int32_t> gpu_chosen(chosen);
    const OnDevice<std::int32_t> gpu_rows(rows);
    const OnDevice<float> gpu_counts(counts);
    const OnDevice<float> gpu_dweights(dweights);
    const OnDevice<std::uint16_t> gpu_dlogits(dlogits.size());
    const OnDevice<std::uint16_t> gpu_dbias(dbias.size());
    cuda::route_grad(device_, gpu_with_tokens, {true, 0.5, 0.25}, gpu_logits.matrix(c.tokens),
                     gpu_weights.matrix(c.tokens), gpu_chosen.matrix(c.tokens),
                     gpu_rows.matrix(c.tokens), gpu_counts.matrix(1), gpu_dweights.matrix(c.tokens),
                     gpu_dlogits.matrix(c.tokens),
                     dbias.empty() ? cuda::Matrix{} : gpu_dbias.matrix(1));
    // Differences of nearly equal numbers: what is left is relative to the largest.
    double largest = 0;
    for (const float d : dlogits) largest = std::max(largest, std::abs(static_cast<double>(d)));
    expect_near(floats_of(gpu_dlogits.get()), dlogits, kHalfRounding, 1e-9 * largest, "dlogit");
    expect_near(floats_of(gpu_dbias.get()), dbias, kHalfRounding, 0, "dbias");
  }
}

TEST_F(MixtureKernels, GatherAndCombineRows) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (const Case& c : cases()) {
    if (c.router != spec::Router::kSoftmax || c.experts > 100) continue;
    SCOPED_TRACE(described(c));
    constexpr std::int64_t kWidth = 40;
    const auto drawn = [&](std::int64_t rows) {
      Floats values(static_cast<std::size_t>(rows * kWidth));
      for (float& value : values) value = normal(random);
      return floats_of(halves_of(values));
    };
    Ints chosen(static_cast<std::size_t>(c.slots()));
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      chosen[i] = static_cast<std::int32_t>((i * i + i / 3) % static_cast<std::size_t>(c.experts));
    }
    Ints rows(chosen.size());
    Ints slots(static_cast<std::size_t>(c.rows()));
    Ints first_rows(static_cast<std::size_t>(c.experts) + 1);
    const std::int64_t most =
        c.capacity == 0 ? c.slots() : c.most_rows();  // tokens may choose one expert twice here
    cpu::sort_rows(reference_, most, on_cpu(chosen, c.tokens), on_cpu(rows, c.tokens),
                   on_cpu(slots, c.rows()), on_cpu(first_rows, 1), {});
    Floats x = drawn(c.tokens);
    Floats gathered(static_cast<std::size_t>(c.rows() * kWidth));
    cpu::gather_rows(reference_, c.per_token, on_cpu(x, c.tokens), on_cpu(slots, c.rows()),
                     on_cpu(gathered, c.rows()));
    const OnDevice<std::uint16_t> gpu_x(halves_of(x));
    const OnDevice<std::int32_t> gpu_slots(slots);
    const OnDevice<std::int32_t> gpu_rows(rows);
    const OnDevice<std::uint16_t> gpu_gathered(gathered.size());
    cuda::gather_rows(device_, c.per_token, gpu_x.matrix(c.tokens), gpu_slots.matrix(c.rows()),
                      gpu_gathered.matrix(c.rows()));
    EXPECT_EQ(floats_of(gpu_gathered.get()), gathered);

    Floats made = drawn(c.rows());
    Floats residual = drawn(c.tokens);
    const OnDevice<std::uint16_t> gpu_made(halves_of(made));
    const OnDevice<std::uint16_t> gpu_residual(halves_of(residual));
    for (const bool with_residual : {false, true}) {
      Floats sums(residual.size());
      cpu::combine_rows(reference_, on_cpu(made, c.rows()), on_cpu(rows, c.tokens),
                        with_residual ? on_cpu(residual, c.tokens) : cpu::Matrix{},
                        on_cpu(sums, c.tokens));
      const OnDevice<std::uint16_t> gpu_sums(sums.size());
      cuda::combine_rows(device_, gpu_made.matrix(c.rows()), gpu_rows.matrix(c.tokens),
                         with_residual ? gpu_residual.matrix(c.tokens) : cuda::Matrix{},
                         gpu_sums.matrix(c.tokens));
      expect_near(floats_of(gpu_sums.get()), sums, kHalfRounding, 1e-6, "sum");
    }
  }
}

TEST_F(MixtureKernels, ActivateWithRouterWeights) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  for (const auto kind : {spec::Mlp::kSwiglu, spec::Mlp::kGelu, spec::Mlp::kRelu2}) {
    for (const std::int64_t width : {8, 264, 1408, 7168}) {
      constexpr std::int64_t kRows = 37;
      constexpr std::int64_t kSlots = 50;
      const std::int64_t inner_width = kind == spec::Mlp::kSwiglu ? 2 * width : width;
      const auto drawn = [&](std::int64_t count) {
        Floats values(static_cast<std::size_t>(count));
        for (float& value : values) value = normal(random);
        return floats_of(halves_of(values));
      };
      Floats inner = drawn(kRows * inner_width);
      Floats da = drawn(kRows * width);
      Floats weights = drawn(kSlots);
      Ints slots;
      for (std::int64_t i = 0; i < kRows; ++i) {
        slots.push_back(i % 9 == 4 ? -1 : static_cast<std::int32_t>((i * 7) % kSlots));
      }
      Floats a(da.size());
      const cpu::RowWeights by{on_cpu(weights, kSlots), on_cpu(slots, kRows)};
      cpu::activate(reference_, kind, on_cpu(inner, kRows), by, on_cpu(a, kRows));
      const OnDevice<float> gpu_weights(weights);
      const OnDevice<std::int32_t> gpu_slots(slots);
      const OnDevice<std::uint16_t> gpu_inner(halves_of(inner));
      const OnDevice<std::uint16_t> gpu_a(a.size());
      const cuda::RowWeights gpu_by{gpu_weights.matrix(kSlots), gpu_slots.matrix(kRows)};
      cuda::activate(device_, kind, gpu_inner.matrix(kRows), gpu_by, gpu_a.matrix(kRows));
      expect_near(floats_of(gpu_a.get()), a, 2 * kHalfRounding, 1e-4, "activation");

      Floats dinner = inner;
      Floats dweights(kSlots, 0);
      Floats again = a;  // rows of nobody keep what they have
      cpu::activate_grad(reference_, kind, on_cpu(dinner, kRows), on_cpu(da, kRows), by,
                         on_cpu(dinner, kRows), on_cpu(dweights, kSlots), on_cpu(again, kRows));
      const OnDevice<std::uint16_t> gpu_da(halves_of(da));
      const OnDevice<float> gpu_dweights(Floats(kSlots, 0));
      // As programs have it: the activation replaces its gradient.
      cuda::activate_grad(device_, kind, gpu_inner.matrix(kRows), gpu_da.matrix(kRows), gpu_by,
                          gpu_inner.matrix(kRows), gpu_dweights.matrix(kSlots),
                          gpu_da.matrix(kRows));
      expect_near(floats_of(gpu_inner.get()), dinner, 2 * kHalfRounding, 1e-3, "dinner");
      const double size = std::sqrt(static_cast<double>(width));
      expect_near(gpu_dweights.get(), dweights, 1e-3, 1e-3 * size, "dweight");
      const Halves forward = gpu_a.get();
      const Halves backward = gpu_da.get();
      for (std::int64_t i = 0; i < kRows; ++i) {
        if (slots[static_cast<std::size_t>(i)] < 0) continue;
        EXPECT_EQ(std::memcmp(forward.data() + i * width, backward.data() + i * width,
                              static_cast<std::size_t>(width) * 2),
                  0)
            << "the activation computed again, row " << i;
      }
    }
  }
}

TEST_F(MixtureKernels, BalanceMovesTheExactBias) {
  const Floats load = {0.5F, -0.25F, 0, 1e-3F, -1, 0, 7};
  Floats bias = {0.1F, -0.2F, 0.3F, 1e-5F, 0, -3, 1.0000001F};
  std::vector<Floats> expected;
  for (const float non_finite : {0.0F, 1.0F}) {
    Floats scalars(static_cast<std::size_t>(step::Scalar::kScalars));
    scalars[static_cast<std::size_t>(step::Scalar::kNonFinite)] = non_finite;
    Floats moved = bias;
    Floats loads = load;
    cpu::balance(reference_, {.balance_rate = 1e-3}, on_cpu(scalars, 1), on_cpu(loads, 1),
                 on_cpu(moved, 1));
    Halves high;
    Halves low;
    for (const float b : bias) {
      high.push_back(split_master(b).high);
      low.push_back(split_master(b).low);
    }
    const OnDevice<float> gpu_scalars(scalars);
    const OnDevice<std::uint16_t> gpu_load(halves_of(load));
    const OnDevice<std::uint16_t> gpu_high(high);
    const OnDevice<std::uint16_t> gpu_low(low);
    cuda::balance(device_, 1e-3, gpu_scalars.matrix(1), gpu_load.matrix(1), gpu_high.matrix(1),
                  gpu_low.matrix(1));
    high = gpu_high.get();
    low = gpu_low.get();
    for (std::size_t i = 0; i < bias.size(); ++i) {
      EXPECT_EQ(join_master({high[i], low[i]}), moved[i]) << i;
    }
  }
}

TEST_F(MixtureKernels, LoadsAndShortVectorsAreFolded) {
  const OnDevice<float> loads(Floats{1, 2, 3, 10, 20, 30, 100, 200, 300});
  const OnDevice<float> sum(Floats{1000, 1000, 1000});
  cuda::fold_fp32(device_, loads.matrix(3), sum.matrix(1), true);
  EXPECT_EQ(sum.get(), (Floats{1111, 1222, 1333}));
  cuda::fold_fp32(device_, loads.matrix(3), sum.matrix(1), false);
  EXPECT_EQ(sum.get(), (Floats{111, 222, 333}));
  // A row of eleven is a vector and three more.
  Floats values;
  for (int i = 0; i < 11; ++i) values.push_back(static_cast<float>(i));
  const OnDevice<std::uint16_t> row(halves_of(values));
  const OnDevice<std::uint16_t> copy(values.size());
  cuda::fold(device_, row.matrix(1), copy.matrix(1), false);
  EXPECT_EQ(floats_of(copy.get()), values);
}

// Rows of several ranks, some of which have none for some experts: as on the CPU, and known on the
// host.
TEST_F(MixtureKernels, ReceivedRowsAreArrangedAsOnTheCpu) {
  for (const auto& [ranks, experts] : {std::pair{2, 1}, {3, 4}, {8, 64}}) {
    SCOPED_TRACE(fmt::format("{} ranks, {} experts each", ranks, experts));
    Ints sent;
    Ints received;
    for (int i = 0; i < ranks * experts; ++i) {
      sent.push_back(i * 7 % 5);
      received.push_back(i % 3 == 1 ? 0 : i * 5 % 11);
    }
    const auto total = std::accumulate(received.begin(), received.end(), 0);
    const auto room = static_cast<std::size_t>(total + 5);
    Ints first(received.size() + 1);
    Ints sources(room);
    Ints places(room);
    cpu::arrange_rows(reference_, on_cpu(sent, ranks), on_cpu(received, ranks), on_cpu(first, 1),
                      on_cpu(sources, total + 5), on_cpu(places, total + 5));
    const OnDevice<std::int32_t> gpu_sent(sent);
    const OnDevice<std::int32_t> gpu_received(received);
    const OnDevice<std::int32_t> gpu_first(first.size());
    const OnDevice<std::int32_t> gpu_sources(room);
    const OnDevice<std::int32_t> gpu_places(room);
    std::int32_t* on_host = nullptr;
    ASSERT_EQ(cudaHostAlloc(reinterpret_cast<void**>(&on_host), 4 * (first.size() + 16),
                            cudaHostAllocMapped),
              cudaSuccess);
    std::int32_t* counts = on_host + first.size();
    cuda::arrange_rows(device_, gpu_sent.matrix(ranks), gpu_received.matrix(ranks),
                       gpu_first.matrix(1), gpu_sources.matrix(total + 5),
                       gpu_places.matrix(total + 5), {on_host, counts, counts + ranks});
    EXPECT_EQ(gpu_sources.get(), sources);
    EXPECT_EQ(gpu_places.get(), places);
    EXPECT_EQ(gpu_first.get(), first);
    EXPECT_EQ(Ints(on_host, on_host + first.size()), first);
    for (int r = 0; r < ranks; ++r) {
      const auto sum = [r, experts = experts](const Ints& of) {
        return std::accumulate(of.begin() + r * experts, of.begin() + (r + 1) * experts, 0);
      };
      EXPECT_EQ(counts[r], sum(sent));
      EXPECT_EQ(counts[ranks + r], sum(received));
    }
    cudaFreeHost(on_host);

    Floats x(room * 16);  // whole numbers that bf16 has
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 251);
    Floats by_expert(x.size(), 3);
    cpu::permute_rows(reference_, on_cpu(x, total + 5), on_cpu(sources, total + 5),
                      on_cpu(by_expert, total + 5));
    const OnDevice<std::uint16_t> gpu_x(halves_of(x));
    const OnDevice<std::uint16_t> gpu_by_expert(halves_of(Floats(x.size(), 3)));
    cuda::permute_rows(device_, false, gpu_x.matrix(total + 5), gpu_sources.matrix(total + 5),
                       gpu_by_expert.matrix(total + 5));
    EXPECT_EQ(floats_of(gpu_by_expert.get()), by_expert);
    const OnDevice<float> gpu_floats(x);
    const OnDevice<float> gpu_floats_by_expert(Floats(x.size(), 3));
    cuda::permute_rows(device_, true, gpu_floats.matrix(total + 5), gpu_sources.matrix(total + 5),
                       gpu_floats_by_expert.matrix(total + 5));
    EXPECT_EQ(gpu_floats_by_expert.get(), by_expert);
  }
}

// The numbers of one place stay while others are sorted, and are replaced when it is sorted again.
TEST_F(MixtureKernels, RowsOfExpertsAreKnownOnTheHost) {
  const spec::ModelSpec model = cuda::testing::mixtures()[0].model;
  const auto program = step::build(
      model,
      {.numerics = step::numerics_of(spec::Precision::kBf16), .sequence = 16, .accumulate = 2});
  ASSERT_TRUE(program.has_value());
  cuda::ExpertRows rows;
  ASSERT_TRUE(rows.open(*program).has_value());
  const auto experts = static_cast<std::size_t>(model.experts);
  constexpr std::int64_t kTokens = 64;
  const OnDevice<std::int32_t> first(experts + 1);
  const OnDevice<std::int32_t> second(experts + 1);
  const OnDevice<std::int32_t> of_slots(kTokens);
  const OnDevice<std::int32_t> of_rows(kTokens);
  const auto sort = [&](const OnDevice<std::int32_t>& place, std::int32_t expert) {
    const OnDevice<std::int32_t> chosen(Ints(kTokens, expert));
    void* at = place.matrix(1).data;
    cuda::sort_rows(device_, kTokens, chosen.matrix(kTokens), of_slots.matrix(kTokens),
                    of_rows.matrix(kTokens), place.matrix(1), {},
                    rows.begin_sort(device_, at, static_cast<std::int64_t>(experts) + 1));
    rows.end_sort(device_, at);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);  // `chosen` goes
  };
  const auto expect = [&](const OnDevice<std::int32_t>& place, std::int32_t expert) {
    const auto found = rows.of(device_, place.matrix(1).data);
    ASSERT_EQ(found.size(), experts + 1);
    for (std::size_t e = 0; e <= experts; ++e) {
      EXPECT_EQ(found[e], static_cast<std::int32_t>(e) > expert ? kTokens : 0);
    }
  };
  sort(first, 0);
  sort(second, 1);
  expect(first, 0);
  expect(second, 1);
  expect(first, 0);
  sort(first, 3);
  expect(second, 1);
  expect(first, 3);
  cuda::Device other;
  EXPECT_TRUE(rows.of(other, this).empty());
  EXPECT_NE(other.failure(), "");
}

}  // namespace
}  // namespace assay::train::mixture_test
