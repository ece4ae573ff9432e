// Costs: the published nanochat table recomputed exactly, ranges kept, whole offers rented.
#include "plan/cost/money.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay::plan {
namespace {

using base::Money;
using base::Seconds;

constexpr std::int64_t kSteps = 14'889;

spec::PriceSpec price(std::int64_t low_cents, std::int64_t high_cents, std::int64_t devices = 8,
                      base::Date date = {2026, 8, 0}) {
  return {.provider = "Somebody",
          .offer = "8x",
          .device = "h100-sxm",
          .devices = devices,
          .date = date,
          .per_hour = {Money(low_cents * 10'000, {}, date), Money(high_cents * 10'000, {}, date)},
          .source = "a test",
          .network = true};
}

spec::ClusterSpec cluster_of(std::int64_t devices) {
  spec::ClusterSpec cluster;
  cluster.devices_per_node = devices;
  cluster.device.name = "NVIDIA H100 80GB HBM3";
  cluster.device.power = base::Watts(700);
  return cluster;
}

struct Row {
  const char* machine;
  std::int64_t cents_per_hour;
  std::int64_t step_tenths_ms;   // a step takes this many tenths of a millisecond
  double published_hours;        // rounded to hundredths in the post …
  std::int64_t published_cents;  // … and multiplied as rounded
  std::int64_t exact_cents;      // the same without rounding in between
};

class NanochatCost : public ::testing::TestWithParam<Row> {};

// cents/h · steps · tenths of ms / 36,000,000 in whole numbers, to the millionth of a dollar.
TEST_P(NanochatCost, IsExactAndThePostMultipliesRoundedHours) {
  const Row& row = GetParam();
  const RunTime run{Seconds(static_cast<double>(row.step_tenths_ms) / 1e4), kSteps};
  const double hours = run.total().count() / 3600;
  EXPECT_NEAR(hours, row.published_hours, 0.005);

  const auto costs =
      costs_of({price(row.cents_per_hour, row.cents_per_hour)}, cluster_of(8), run.total());
  ASSERT_TRUE(costs.has_value());
  const std::int64_t product = row.cents_per_hour * 10'000 * kSteps * row.step_tenths_ms;
  const std::int64_t exact = (product + 18'000'000) / 36'000'000;
  EXPECT_EQ(costs->front().total.low.micros(), exact);
  EXPECT_EQ(costs->front().total.high.micros(), exact);
  EXPECT_EQ((exact + 5'000) / 10'000, row.exact_cents);

  const double rounded_hours = std::round(hours * 100) / 100;
  EXPECT_EQ(std::llround(rounded_hours * static_cast<double>(row.cents_per_hour)),
            row.published_cents);
}

INSTANTIATE_TEST_SUITE_P(Post, NanochatCost,
                         ::testing::Values(Row{"SXM", 1285, 7'019, 2.90, 3727, 3730},
                                           Row{"PCIe", 1912, 14'116, 5.84, 11166, 11163},
                                           Row{"NVL", 2152, 20'315, 8.40, 18077, 18081}),
                         [](const auto& row) { return std::string(row.param.machine); });

TEST(RunTime, UsefulFractionStretchesIt) {
  const RunTime run{Seconds(0.5), 1000, 0.8};
  EXPECT_DOUBLE_EQ(run.total().count(), 625);
}

TEST(Costs, RangesStayRangesAndTheCheapestIsFirst) {
  const auto costs = costs_of({price(5500, 7600), price(1600, 7600)}, cluster_of(8), Seconds(1800));
  ASSERT_TRUE(costs.has_value());
  ASSERT_EQ(costs->size(), 2U);
  EXPECT_EQ(spec::to_text((*costs)[0].total), "$8.00 - $38.00");
  EXPECT_EQ(spec::to_text((*costs)[1].total), "$27.50 - $38.00");
  EXPECT_EQ((*costs)[0].total.low.as_of(), (base::Date{2026, 8, 0}));
}

TEST(Costs, OffersAreRentedWhole) {
  const auto costs = costs_of({price(1000, 1000)}, cluster_of(20), Seconds(3600));
  ASSERT_TRUE(costs.has_value());
  EXPECT_EQ(costs->front().rented, 3);
  EXPECT_EQ(costs->front().idle_devices, 4);
  EXPECT_EQ(base::to_text(costs->front().per_hour.low), "$30.00");
  EXPECT_EQ(base::to_text(costs->front().total.low), "$30.00");
}

// Three machines that nothing is known to connect are no place to train on.
TEST(Costs, OffersOfSeveralMachinesNeedANetwork) {
  spec::PriceSpec apart = price(900, 900);
  apart.network = false;
  const auto both = costs_of({apart, price(1000, 1000)}, cluster_of(20), Seconds(3600));
  ASSERT_TRUE(both.has_value());
  ASSERT_EQ(both->size(), 1U);
  EXPECT_EQ(base::to_text(both->front().total.low), "$30.00");
  EXPECT_EQ(costs_of({apart}, cluster_of(8), Seconds(3600))->size(), 1U);
  const auto none = costs_of({apart}, cluster_of(20), Seconds(3600));
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().line(),
            "price: no offer for 20 devices of 'NVIDIA H100 80GB HBM3' is known to connect its "
            "machines by a network; add a [[price]] to the job");
}

TEST(Costs, MissingPricesNameTheDeviceAndWhatToDo) {
  const auto costs = costs_of({}, cluster_of(8), Seconds(1));
  ASSERT_FALSE(costs.has_value());
  EXPECT_EQ(costs.error().line(),
            "price: no price is known for 'NVIDIA H100 80GB HBM3'; add a [[price]] to the job; "
            "its keys: assay presets keys price");
}

TEST(Costs, MoreMoneyThanThereIsIsAnError) {
  EXPECT_FALSE(costs_of({price(5500, 7600)}, cluster_of(8), Seconds(1e18)).has_value());
}

// 8 · 700 W for 2.5 hours is 14 kWh; 1.5 of that at 400 g is 8.4 kg.
TEST(Energy, IsWattsTimesDevicesTimesHours) {
  const auto energy =
      energy_of(cluster_of(8), Seconds(9000), {.pue = 1.5, .grid_g_per_kwh = 400.0});
  ASSERT_TRUE(energy.has_value());
  EXPECT_DOUBLE_EQ(energy->devices_kwh(), 14);
  EXPECT_DOUBLE_EQ(energy->building_kwh(), 21);
  EXPECT_DOUBLE_EQ(energy->carbon_kg(), 8.4);
  EXPECT_EQ(energy->pue.source, "given");
}

TEST(Energy, MeasuredPowerReplacesTheLimit) {
  const auto energy =
      energy_of(cluster_of(8), Seconds(9000), {.watts_per_device = base::Watts(350)});
  ASSERT_TRUE(energy.has_value());
  EXPECT_DOUBLE_EQ(energy->devices_kwh(), 7);
  EXPECT_NE(energy->pue.source, "given");
}

TEST(Energy, UnknownPowerNamesTheKeyToSet) {
  spec::ClusterSpec cluster = cluster_of(8);
  cluster.device.power.reset();
  const auto energy = energy_of(cluster, Seconds(1), {});
  ASSERT_FALSE(energy.has_value());
  EXPECT_EQ(energy.error().line(),
            "cluster.device.power: not known for 'NVIDIA H100 80GB HBM3'; set it, or give --watts "
            "as measured");
}

}  // namespace
}  // namespace assay::plan
