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

// The clock that the card's power limit sustains, as a share of full clock, when tensor cores are
// busy for a share `busy` of the time.
double sustained_clock(double busy, const Card& card, const Constants& constants);

// The share of a pass over `bytes` just written that costs HBM time; the L2 cache serves the rest.
double cache_miss(double bytes, base::Bytes cache);

// Time of two activities that run at once: the longer one, and a little more where both are about
// equally long, because neither is even over time.
double smooth_max(double a, double b);

// Of an exchange beside computation: what outlasts it, and by how much it slows it, as a share of
// the time that both run.
double unhidden_seconds(double exchange, double compute, double slowed);

}  // namespace assay::plan
