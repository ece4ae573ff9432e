// Times of single operations on a card: matrix products by tiles and waves, passes over memory, and
// overlap of two that run at once.
#pragma once

#include "base/units.h"
#include "plan/model/constants.h"
#include "plan/model/work.h"

namespace assay::plan {

// One rate of products: what tensor cores do per second when tiles fill them, and how many
// processors share it.
struct ProductRate {
  double flops = 0;
  double multiprocessors = 1;
};

// Seconds of C[m, n] = A[m, k] B[k, n].
double product_seconds(double m, double n, double k, const ProductRate& rate,
                       const Constants& constants);

inline constexpr double kTileRows = 128;  // of products of experts
// Rows that tiles cover where each of some experts has `each` of its own.
double tiled_rows(double experts, double each);

struct TwoWays {
  double forward = 0;
  double backward = 0;

  TwoWays& operator+=(const TwoWays& other) {
    forward += other.forward;
    backward += other.backward;
    return *this;
  }
};

// y[m, n] = x[m, k] w[k, n]: the product, and the gradients of x and, if `trained`, of w.
TwoWays linear_seconds(double m, double n, double k, const ProductRate& rate, bool trained,
                       const Constants& constants);

// Of full clock, what the card's power sustains when tensor cores are busy for a share of the time.
double sustained_clock(double busy, const Card& card, const Constants& constants);

// The share of a pass over `bytes` that were just written which costs memory's time; `cache` keeps
// the rest.
double cache_miss(double bytes, base::Bytes cache);

// The larger of two that run at once, and a little more where they are near each other: neither is
// even over time.
double smooth_max(double a, double b);

}  // namespace assay::plan
