// Rows that the model itself made with other constants than the priors: fits must find those.
#include "plan/calibrate/fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "plan/calibrate/calibration.h"
#include "plan/calibrate/cross_validation.h"
#include "plan/calibrate/residuals.h"
#include "plan/calibrate/scores.h"
#include "plan/model/cards.h"
#include "plan/model/cluster_links.h"
#include "plan/model/memory.h"
#include "plan/model/step_time.h"
#include "plan/testing/clusters.h"

namespace assay::plan {
namespace {

Work decoder(Framework framework, double dim, double layers, double micro_batch, double tp) {
  const CardSheet* sheet = find_card("A100-SXM4-80GB");
  Work work;
  work.card = sheet->card;
  work.software = software_of(framework, work.card);
  work.links = *links_of(
      testing::with_network(testing::one_node(8, spec::LinkKind::kNvswitch,
                                              sheet->link.count() / testing::kGb, /*fp8=*/false),
                            1, 8 * sheet->network.count() / testing::kGb));
  work.shape = {.layers = layers,
                .dim = dim,
                .heads = dim / 128,
                .kv_heads = dim / 128,
                .head_dim = 128,
                .ffn = 4 * dim,
                .mlp_matrices = 2,
                .vocab = 51'200,
                .qkv = 3 * dim,
                .attention_out = dim,
                .body_parameters = 12 * dim * dim * layers};
  work.shape.parameters = work.shape.body_parameters + work.shape.vocab * dim;
  work.degrees = {.dp = 8 / tp, .tp = tp, .ranks = 8};
  work.batch = {.sequence = 2048, .micro_batch = micro_batch, .micros = 4};
  return work;
}

std::vector<Work> decoders(const std::vector<double>& layers) {
  std::vector<Work> works;
  for (const Framework framework : {Framework::kMegatron, Framework::kTorch, Framework::kLlmc})
    for (const double dim : {512, 1024, 2048, 4096})
      for (const double count : layers)
        for (const double micro_batch : {1, 2, 8})
          for (const double tp : {1, 2, 8})
            works.push_back(decoder(framework, dim, count, micro_batch, tp));
  return works;
}

std::vector<Row> rows_made_with(const Constants& truth, double noise,
                                const std::vector<double>& layers = {24}) {
  std::mt19937_64 random(1);  // NOLINT(cert-msc51-cpp): the same rows each time
  std::normal_distribution<double> off(0, noise);
  std::vector<Row> rows;
  for (Work& work : decoders(layers)) {
    const double seconds =
        step_seconds(work, truth).count() * std::exp(noise > 0 ? off(random) : 0);
    rows.push_back({.project = std::string(to_text(work.software.framework)),
                    .step_s = seconds,
                    .candidates = {std::move(work)}});
  }
  return rows;
}

Constants other_constants() {
  Constants truth = prior_constants();
  truth.gemm_eff = 0.85;
  truth.pass_eager = 1.4;
  truth.pass_torch = 1.7;
  truth.host_us = 12;
  truth.coll_eff = 0.8;
  return truth;
}

double mean_error(std::span<const Row> rows, const Constants& constants) {
  return score(rows, predict_all(rows, constants, prior_memory_constants(), {}, {})).time.mean;
}

TEST(Fit, FindsTheConstantsThatMadeTheRows) {
  const Constants truth = other_constants();
  // Enough that the pull to the priors is weak beside them.
  const auto rows = rows_made_with(truth, 0, {8, 12, 16, 20, 24, 32, 40, 48, 64, 96});
  const Constants found = fit(rows);
  EXPECT_GT(mean_error(rows, prior_constants()), 0.1);
  EXPECT_LT(mean_error(rows, found), 0.01);
  EXPECT_NEAR(found.host_us, truth.host_us, 0.05 * truth.host_us);
  EXPECT_NEAR(found.pass_torch, truth.pass_torch, 0.1 * truth.pass_torch);
}

TEST(Fit, FindsThemThroughNoiseAndRowsThatAreWrong) {
  const Constants truth = other_constants();
  auto rows = rows_made_with(truth, 0.03);
  for (std::size_t i = 0; i < rows.size(); i += 12) rows[i].step_s = *rows[i].step_s * 5;
  const Constants found = fit(rows);
  EXPECT_LT(mean_error(rows_made_with(truth, 0), found), 0.03);
  EXPECT_NEAR(found.host_us, truth.host_us, 0.15 * truth.host_us);
}

Row mixture(const std::string& project, double dim, double layers, double micro_batch,
            double effect) {
  Work work = decoder(Framework::kMegatronCore, dim, layers, micro_batch, 1);
  work.shape.experts = 64;
  work.shape.experts_per_token = 4;
  work.shape.expert_ffn = dim / 2;
  work.shape.moe_layers = layers;
  work.degrees.ep = 8;
  const double seconds = effect * step_seconds(work, prior_constants()).count();
  return {.project = project, .step_s = seconds, .candidates = {std::move(work)}};
}

// All mixtures of a project take twice as long, and it has more rows: an effect of this project,
// which says nothing of others.
TEST(Fit, EffectsOfOneProjectAreNotLearntForOthers) {
  std::vector<Row> others;
  std::vector<Row> all;
  for (const double dim : {512, 1024, 2048, 4096, 6144})
    for (const double micro_batch : {1, 2, 4, 8}) {
      others.push_back(mixture("others", dim, 24, micro_batch, 1));
      all.push_back(others.back());
      for (const double layers : {12, 24, 48, 96})
        all.push_back(mixture("slow", dim, layers, micro_batch, 2));
    }
  const double with_effects = mean_error(others, fit(all));
  EXPECT_LT(with_effects, 0.1);
  EXPECT_LT(with_effects, 0.5 * mean_error(others, fit(all, {.project_effects = false})));
}

TEST(Fit, WhatNoRowDependsOnStaysAsItWas) {
  const Constants found = fit(rows_made_with(other_constants(), 0));
  const Constants priors = prior_constants();
  for (const auto constant : {&Constants::fp8_eff, &Constants::moe_ops, &Constants::net_eff})
    EXPECT_NEAR(found.*constant, priors.*constant, 1e-9);
  for (const ConstantInfo& info : constant_table()) {
    if (info.fitted) continue;
    EXPECT_EQ(found.*info.value, priors.*info.value) << info.name;
  }
}

TEST(Fit, StaysWithinBoundsForAnyRows) {
  auto rows = rows_made_with(prior_constants(), 0);
  for (Row& row : rows) row.step_s = *row.step_s * 100;
  const Constants found = fit(rows);
  for (const ConstantInfo& info : constant_table()) {
    EXPECT_GE(found.*info.value, info.low) << info.name;
    EXPECT_LE(found.*info.value, info.high) << info.name;
  }
}

TEST(Fit, WithoutRowsIsThePriors) {
  const Constants found = fit({});
  for (const ConstantInfo& info : constant_table())
    EXPECT_NEAR(found.*info.value, info.prior, 1e-12 * std::abs(info.prior)) << info.name;
}

// The rows left out may say anything.
TEST(Fit, DoesNotUseAProjectThatIsLeftOut) {
  auto rows = rows_made_with(other_constants(), 0.02);
  const Constants before = Fitter(rows).fit_without("llm.c");
  for (Row& row : rows)
    if (row.project == "llm.c") row.step_s = 1e6;
  const Constants after = Fitter(rows).fit_without("llm.c");
  std::erase_if(rows, [](const Row& row) { return row.project == "llm.c"; });
  const Constants absent = fit(rows);
  for (const ConstantInfo& info : constant_table()) {
    EXPECT_EQ(before.*info.value, after.*info.value) << info.name;
    EXPECT_EQ(before.*info.value, absent.*info.value) << info.name;
  }
}

TEST(FitMemory, FindsTheConstantsThatMadeTheRows) {
  MemoryConstants truth = prior_memory_constants();
  truth.logit_bytes_eager = 9;
  truth.base_gib = 3;
  std::vector<Row> rows;
  for (Work& work : decoders({24})) {
    const double gib = memory_need(work, truth).total() / base::Bytes(1 << 30);
    rows.push_back({.memory_gib = gib, .candidates = {std::move(work)}});
  }
  const MemoryConstants found = fit_memory(rows);
  EXPECT_NEAR(found.logit_bytes_eager, 9, 0.1);
  EXPECT_NEAR(found.base_gib, 3, 0.1);
}

// Threads take turns as they like; figures do not depend on it.
TEST(CrossValidate, IsTheSameOnAnyNumberOfThreads) {
  const auto rows = rows_made_with(other_constants(), 0.05);
  const auto one = cross_validate(rows, 1);
  const auto three = cross_validate(rows, 3);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(one[i].step_s, three[i].step_s);
    EXPECT_EQ(one[i].low, three[i].low);
    EXPECT_EQ(one[i].high, three[i].high);
  }
}

TEST(CrossValidate, PredictsWithoutTheProjectAndWhatItWasOffBy) {
  const auto rows = rows_made_with(other_constants(), 0.05);
  const auto predictions = cross_validate(rows);
  const Row& row = rows.front();
  const Constants unseen = Fitter(rows).fit_without(row.project);
  EXPECT_EQ(predictions.front().step_s, predict(row, unseen)->step_s);

  auto others = residuals_of(rows, predictions);
  std::erase_if(others, [&](const Residual& residual) { return residual.project == row.project; });
  std::vector<Row> other_rows = rows;
  std::erase_if(other_rows, [&](const Row& other) { return other.project == row.project; });
  const ErrorInterval interval =
      interval_of(row.candidates.front(), interval_table(others), seen_in(other_rows));
  EXPECT_EQ(predictions.front().low, *predictions.front().step_s * interval.low);
  EXPECT_EQ(predictions.front().high, *predictions.front().step_s * interval.high);
}

TEST(Calibrate, MakesAFileThatCanBeRead) {
  const auto rows = rows_made_with(other_constants(), 0.05);
  const auto made = calibrate(rows);
  ASSERT_TRUE(made) << made.error().line();
  EXPECT_EQ(made->intervals.of(SoftwareClass::kTorchEager).rows, 36);
  EXPECT_EQ(made->seen.ranges[static_cast<std::size_t>(SoftwareClass::kTorchEager)].ranks.high, 8);
  EXPECT_EQ(made->memory.work, shipped_memory_constants().work);  // no row says its memory
  // And none is a mixture.
  EXPECT_EQ(made->intervals.of(SoftwareClass::kMoe).high,
            shipped_intervals().of(SoftwareClass::kMoe).high);
  const auto read = calibration_from_json(to_json(*made), "mine.json");
  ASSERT_TRUE(read) << read.error().line();
  EXPECT_EQ(to_json(*read), to_json(*made));
}

TEST(Calibrate, WantsSomethingMeasured) {
  auto rows = rows_made_with(prior_constants(), 0);
  for (Row& row : rows) row.step_s.reset();
  const auto made = calibrate(rows);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, base::ExitCode::kUsage);
}

}  // namespace
}  // namespace assay::plan
