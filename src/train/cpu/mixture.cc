// Mixtures of experts: choosing experts, sorting tokens by expert and back, and the experts'
// products (step/mixture.cc).
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "train/cpu/kernels.h"

namespace assay::train::cpu {
namespace {

constexpr std::int64_t kRoutedTokens = 16;

double logistic(double x) {
  return 1 / (1 + std::exp(-x));
}

// The router's scores of a token's experts: softmax probabilities, or sigmoids.
class Scores {
 public:
  Scores(const Routing& routing, const float* logits, std::int64_t experts)
      : routing_(routing), values_(static_cast<std::size_t>(experts)) {
    const double most = *std::max_element(logits, logits + experts);
    double sum = 0;
    for (std::int64_t e = 0; e < experts; ++e) sum += std::exp(logits[e] - most);
    log_z_ = most + std::log(sum);
    for (std::size_t e = 0; e < values_.size(); ++e) {
      values_[e] = is_softmax() ? std::exp(logits[e] - log_z_) : logistic(logits[e]);
      total_ += values_[e];
    }
  }
  [[nodiscard]] bool is_softmax() const { return routing_.router == spec::Router::kSoftmax; }
  [[nodiscard]] double operator[](std::int64_t e) const {
    return values_[static_cast<std::size_t>(e)];
  }
  // Used to measure the balance; they sum to 1.
  [[nodiscard]] double probability(std::int64_t e) const { return (*this)[e] / total_; }
  [[nodiscard]] double total() const { return total_; }
  [[nodiscard]] double log_z() const { return log_z_; }

 private:
  Routing routing_;
  std::vector<double> values_;
  double total_ = 0;
  double log_z_ = 0;
};

// The best first; ties go to the lowest number. Compares logits rather than probabilities: those of
// far lower logits are all zero.
void choose(const Scores& scores, const float* logits, const Matrix& bias, std::int64_t experts,
            std::int64_t count, std::int32_t* chosen) {
  const auto rank_of = [&](std::int64_t e) {
    if (scores.is_softmax()) return static_cast<double>(logits[e]);
    return scores[e] + (bias.empty() ? 0.0 : static_cast<double>(bias.data[e]));
  };
  for (std::int64_t j = 0; j < count; ++j) {
    std::int64_t best = -1;
    for (std::int64_t e = 0; e < experts; ++e) {
      const auto* const end = chosen + j;
      if (std::find(static_cast<const std::int32_t*>(chosen), end, e) != end) continue;
      if (best < 0 || rank_of(e) > rank_of(best)) best = e;
    }
    chosen[j] = static_cast<std::int32_t>(best);
  }
}

}  // namespace

void route(Device& device, const Routing& routing, Matrix logits, Matrix bias, Matrix weights,
           Integers experts, Matrix counts, Matrix sums, bool adds_sums, Matrix loads,
           bool adds_loads) {
  device.executed(step::OpKind::kRoute, {logits, bias}, {weights, experts, counts, sums, loads});
  const std::int64_t tokens = logits.rows;
  const std::int64_t blocks = (tokens + kRoutedTokens - 1) / kRoutedTokens;
  struct Sums {
    std::vector<double> probability;
    double z = 0;
  };
  std::vector<Sums> of_block(static_cast<std::size_t>(blocks));
  device.ranges(tokens, kRoutedTokens, [&](std::int64_t first, std::int64_t last) {
    Sums& block = of_block[static_cast<std::size_t>(first / kRoutedTokens)];
    block.probability.assign(static_cast<std::size_t>(logits.cols), 0.0);
    for (std::int64_t t = first; t < last; ++t) {
      const Scores scores(routing, logits.row(t), logits.cols);
      std::int32_t* chosen = experts.row(t);
      choose(scores, logits.row(t), bias, logits.cols, experts.cols, chosen);
      double total = 0;
      for (std::int64_t j = 0; j < experts.cols; ++j) total += scores[chosen[j]];
      const double scale = routing.scale / (routing.normalise ? total : 1);
      for (std::int64_t j = 0; j < experts.cols; ++j) {
        weights.row(t)[j] = static_cast<float>(scale * scores[chosen[j]]);
      }
      for (std::int64_t e = 0; e < logits.cols; ++e) {
        block.probability[static_cast<std::size_t>(e)] += scores.probability(e);
      }
      block.z += scores.log_z() * scores.log_z();
    }
  });
  std::fill_n(counts.data, counts.cols, 0.0F);
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (std::int64_t j = 0; j < experts.cols; ++j) counts.data[experts.row(t)[j]] += 1;
  }
  if (sums.empty()) return;
  double balance = 0;  // experts x sum(share of slots x mean probability), times tokens
  double z = 0;
  double dropped = 0;
  for (const Sums& block : of_block) {
    z += block.z;
    for (std::int64_t e = 0; e < counts.cols; ++e) {
      balance +=
          static_cast<double>(counts.data[e]) * block.probability[static_cast<std::size_t>(e)];
    }
  }
  balance *= static_cast<double>(counts.cols) / static_cast<double>(tokens * experts.cols);
  for (std::int64_t e = 0; e < counts.cols; ++e) {
    const double over =
        static_cast<double>(counts.data[e]) - static_cast<double>(routing.most_rows);
    dropped += std::max(0.0, over);
    loads.data[e] = (adds_loads ? loads.data[e] : 0.0F) + counts.data[e];
  }
  const double values[] = {balance, z, dropped};
  for (std::size_t i = 0; i < 3; ++i) {
    sums.data[i] = (adds_sums ? sums.data[i] : 0.0F) + static_cast<float>(values[i]);
  }
}

void route_grad(Device& device, const Routing& routing, const StepSettings& settings,
                bool adds_losses, Matrix logits, Matrix weights, Integers experts, Integers rows,
                Matrix counts, Matrix dweights, Matrix dlogits, Matrix dbias) {
  device.executed(step::OpKind::kRouteGrad, {logits, weights, experts, rows, counts, dweights},
                  {dlogits, dbias});
  const std::int64_t count = logits.cols;
  const auto tokens = static_cast<double>(logits.rows);
  const auto slots = static_cast<double>(experts.rows * experts.cols);
  // The gradient of a micro-batch's balance loss, a mean over its tokens, as part of the step's
  // mean.
  const double balance =
      adds_losses ? settings.balance_loss * static_cast<double>(count) / slots / routing.step_tokens
                  : 0;
  const double z = adds_losses ? 2 * settings.router_z_loss / routing.step_tokens : 0;
  device.ranges(logits.rows, kRoutedTokens, [&](std::int64_t first, std::int64_t last) {
    std::vector<double> d(static_cast<std::size_t>(count));  // gradients of scores
    for (std::int64_t t = first; t < last; ++t) {
      const Scores scores(routing, logits.row(t), count);
      // d(sum of counts x probability), where probability = score / total.
      double mean = 0;
      for (std::int64_t e = 0; e < count; ++e) {
        mean += static_cast<double>(counts.data[e]) * scores.probability(e);
      }
      for (std::int64_t e = 0; e < count; ++e) {
        d[static_cast<std::size_t>(e)] =
            balance * (static_cast<double>(counts.data[e]) - mean) / scores.total();
      }
      double chosen = 0;
      double weighted = 0;
      for (std::int64_t j = 0; j < experts.cols; ++j) {
        const double score = scores[experts.row(t)[j]];
        chosen += score;
        if (rows.row(t)[j] >= 0) weighted += score * static_cast<double>(dweights.row(t)[j]);
      }
      for (std::int64_t j = 0; j < experts.cols; ++j) {
        const double dw = rows.row(t)[j] >= 0 ? static_cast<double>(dweights.row(t)[j]) : 0;
        d[static_cast<std::size_t>(experts.row(t)[j])] +=
            routing.scale * (routing.normalise ? (dw - weighted / chosen) / chosen : dw);
      }
      double inner = 0;
      for (std::int64_t e = 0; e < count; ++e) inner += d[static_cast<std::size_t>(e)] * scores[e];
      for (std::int64_t e = 0; e < count; ++e) {
        const double of_score = d[static_cast<std::size_t>(e)];
        const double through = scores.is_softmax() ? scores[e] * (of_score - inner)
                                                   : of_score * scores[e] * (1 - scores[e]);
        const double of_log_z =
            std::exp(static_cast<double>(logits.row(t)[e]) - scores.log_z()) * scores.log_z();
        dlogits.row(t)[e] = static_cast<float>(through + z * of_log_z);
      }
    }
  });
  if (dbias.empty()) return;
  // The relative deviation of the load from its mean.
  const double even = tokens * static_cast<double>(experts.cols) / static_cast<double>(count);
  for (std::int64_t e = 0; e < count; ++e) {
    const double above = static_cast<double>(counts.data[e]) / even - 1;
    dbias.data[e] = adds_losses ? static_cast<float>(above) : 0.0F;
  }
}

void sort_rows(Device& device, std::int64_t most_rows, Integers experts, Integers rows,
               Integers slots, Integers first_rows, Integers counts) {
  device.executed(step::OpKind::kSortRows, {experts}, {rows, slots, first_rows, counts});
  const std::int64_t count = first_rows.cols - 1;
  std::vector<std::int64_t> next(static_cast<std::size_t>(count), 0);
  for (std::int64_t i = 0; i < experts.rows * experts.cols; ++i)
    ++next[static_cast<std::size_t>(experts.data[i])];
  std::int64_t first = 0;
  for (std::int64_t e = 0; e < count; ++e) {
    std::int64_t& of_expert = next[static_cast<std::size_t>(e)];
    first_rows.data[e] = static_cast<std::int32_t>(first);
    first += std::min(most_rows, std::exchange(of_expert, first));
  }
  first_rows.data[count] = static_cast<std::int32_t>(first);
  std::fill_n(slots.data, slots.rows, -1);
  for (std::int64_t i = 0; i < experts.rows * experts.cols; ++i) {
    const std::int32_t expert = experts.data[i];
    std::int64_t& row = next[static_cast<std::size_t>(expert)];
    const bool fits = row < first_rows.data[expert + 1];
    rows.data[i] = fits ? static_cast<std::int32_t>(row) : -1;
    if (fits) slots.data[row++] = static_cast<std::int32_t>(i);
  }
  for (std::int64_t e = 0; e < counts.rows * counts.cols; ++e) {
    counts.data[e] = first_rows.data[e + 1] - first_rows.data[e];
  }
}

void arrange_rows(Device& device, Integers sent, Integers received, Integers first_rows,
                  Integers sources, Integers places) {
  device.executed(step::OpKind::kArrangeRows, {sent, received}, {first_rows, sources, places});
  std::fill_n(sources.data, sources.rows, -1);
  std::fill_n(places.data, places.rows, -1);
  // The first received row for each rank and expert.
  std::vector<std::int32_t> begins(static_cast<std::size_t>(received.rows * received.cols));
  std::exclusive_scan(received.data, received.data + begins.size(), begins.begin(), 0);
  std::int32_t next = 0;
  for (std::int64_t e = 0; e < received.cols; ++e) {
    for (std::int64_t rank = 0; rank < received.rows; ++rank) {
      first_rows.data[e * received.rows + rank] = next;
      const auto at = static_cast<std::size_t>(rank * received.cols + e);
      for (std::int32_t i = 0; i < received.data[at]; ++i, ++next) {
        sources.data[next] = begins[at] + i;
        places.data[begins[at] + i] = next;
      }
    }
  }
  first_rows.data[received.cols * received.rows] = next;
}

void permute_rows(Device& device, Matrix x, Integers index, Matrix rows) {
  device.executed(step::OpKind::kPermuteRows, {x, index}, {rows});
  device.ranges(rows.rows, kRoutedTokens, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      if (index.data[i] >= 0) std::copy_n(x.row(index.data[i]), rows.cols, rows.row(i));
    }
  });
}

void gather_rows(Device& device, std::int64_t per_token, Matrix x, Integers slots, Matrix rows) {
  device.executed(step::OpKind::kGatherRows, {x, slots}, {rows});
  device.ranges(rows.rows, kRoutedTokens, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      if (slots.data[i] < 0) {
        std::fill_n(rows.row(i), rows.cols, 0.0F);
      } else {
        std::copy_n(x.row(slots.data[i] / per_token), rows.cols, rows.row(i));
      }
    }
  });
}

void combine_rows(Device& device, Matrix x, Integers rows, Matrix residual, Matrix sums) {
  device.executed(step::OpKind::kCombineRows, {x, rows, residual}, {sums});
  device.ranges(sums.rows, kRoutedTokens, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) {
      for (std::int64_t i = 0; i < sums.cols; ++i) {
        float sum = residual.empty() ? 0.0F : residual.row(t)[i];
        for (std::int64_t j = 0; j < rows.cols; ++j) {
          if (rows.row(t)[j] >= 0) sum += x.row(rows.row(t)[j])[i];
        }
        sums.row(t)[i] = sum;
      }
    }
  });
}

void grouped_matmul(Device& device, Product product, std::int64_t pieces, Matrix a, Matrix b,
                    Integers first_rows, Matrix c) {
  device.executed(step::OpKind::kGroupedMatmul, {a, b, first_rows}, {c});
  const std::int64_t experts = (first_rows.cols - 1) / pieces;
  const auto part = [](const Matrix& m, std::int64_t first, std::int64_t count) {
    return Matrix{m.row(first), count, m.cols, m.stride};
  };
  const auto of_expert = [&](const Matrix& m, std::int64_t e) {
    return part(m, e * (m.rows / experts), m.rows / experts);
  };
  for (std::int64_t e = 0; product.transpose_a && e < experts; ++e) {  // gradients of weights
    const std::int64_t first = first_rows.data[e * pieces];
    const std::int64_t count = first_rows.data[(e + 1) * pieces] - first;
    const Matrix made = of_expert(c, e);
    if (count == 0 && product.adds) continue;
    if (count == 0) {  // no rows, so the gradient is zero
      for (std::int64_t i = 0; i < made.rows; ++i) std::fill_n(made.row(i), made.cols, 0.0F);
    } else {
      multiply_rows(device, product, part(a, first, count), part(b, first, count), {}, {}, made);
    }
  }
  for (std::int64_t i = 0; !product.transpose_a && i < experts * pieces; ++i) {
    const std::int64_t first = first_rows.data[i];
    const std::int64_t count = first_rows.data[i + 1] - first;
    if (count == 0) continue;
    multiply_rows(device, product, part(a, first, count), of_expert(b, i / pieces), {}, {},
                  part(c, first, count));
  }
}

void balance(Device& device, const StepSettings& settings, Matrix scalars, Matrix load,
             Matrix bias) {
  device.executed(step::OpKind::kBalance, {load, scalars}, {bias});
  if (scalars.data[static_cast<std::size_t>(step::Scalar::kNonFinite)] != 0) return;
  for (std::int64_t e = 0; e < bias.cols; ++e) {
    const float above = load.data[e];
    const auto by = static_cast<float>(settings.balance_rate);
    bias.data[e] -= above > 0 ? by : above < 0 ? -by : 0.0F;
  }
}

}  // namespace assay::train::cpu
