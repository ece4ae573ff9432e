#include "plan/model/op_time.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace assay::plan {
namespace {

// What cuBLAS chooses from, and how much of the best rate each reaches.
struct ProductTile {
  double rows;
  double columns;
  double efficiency;
};
constexpr std::array<ProductTile, 3> kProductTiles = {
    {{128, 256, 1.0}, {128, 128, 0.93}, {64, 128, 0.75}}};

// A product of few tiles is split along K, down to this part of a wave.
constexpr double kLeastWave = 0.25;

// Data in the cache is read 1 / 0.4 times as fast as from memory.
constexpr double kCacheFloor = 0.4;

// The part of full power that does not follow what tensor cores do: leakage, memory, clocks.
constexpr double kStaticPower = 0.4;

}  // namespace

double product_seconds(double m, double n, double k, const ProductRate& rate,
                       const Constants& constants) {
  double least = HUGE_VAL;
  for (const ProductTile& tile : kProductTiles) {
    const double waves =
        std::ceil(m / tile.rows) * std::ceil(n / tile.columns) / rate.multiprocessors;
    const double paid = (1 - constants.gemm_tail) * std::max(waves, kLeastWave) +
                        constants.gemm_tail * std::ceil(waves);
    least = std::min(least, paid * (2 * tile.rows * tile.columns / tile.efficiency));
  }
  return least * (k + constants.gemm_k0) * rate.multiprocessors / rate.flops;
}

double tiled_rows(double experts, double each) {
  return experts * std::ceil(each / kTileRows) * kTileRows;
}

TwoWays linear_seconds(double m, double n, double k, const ProductRate& rate, bool trained,
                       const Constants& constants) {
  TwoWays both{product_seconds(m, n, k, rate, constants),
               product_seconds(m, k, n, rate, constants)};
  if (trained) both.backward += product_seconds(n, k, m, rate, constants);
  return both;
}

double sustained_clock(double busy, const Card& card, const Constants& constants) {
  const double needed = constants.pow_ref * (kStaticPower + (1 - kStaticPower) * busy);
  const double given = card.watts.count() / (card.bf16_flops.count() * 1e-12);
  return given >= needed ? 1 : std::pow(given / needed, constants.pow_exp);
}

double cache_miss(double bytes, base::Bytes cache) {
  return kCacheFloor + (1 - kCacheFloor) * bytes / (bytes + static_cast<double>(cache.count()));
}

double unhidden_seconds(double exchange, double compute, double slowed) {
  return std::max(0.0, exchange - compute) + slowed * std::min(compute, exchange);
}

double smooth_max(double a, double b) {
  const double larger = std::max(a, b);
  if (larger <= 0) return 0;
  const double ratio = std::min(a, b) / larger;  // so that no power overflows
  const double square = ratio * ratio;
  return larger * std::sqrt(std::sqrt(1 + square * square));
}

}  // namespace assay::plan
