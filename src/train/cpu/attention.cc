// Causal attention, and the rotary positions of its queries and keys. One task is one sequence and
// one key/value head with all the query heads that share it, so that no two tasks add to the same
// gradient. Scores are computed for a block of queries at a time and not stored: the backward pass
// recomputes them from the log-sum-exp.
#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "train/cpu/kernels.h"

namespace assay::train::cpu {
namespace {

constexpr std::int64_t kQueries = 64;

struct Place {
  std::int64_t first_row = 0;  // of this sequence's queries
  std::int64_t first_key = 0;
  std::int64_t kv_head = 0;
};

Place place_of(std::int64_t task, AttentionShape shape) {
  const std::int64_t sequence = task / shape.kv_heads;
  return {sequence * shape.queries, sequence * shape.keys, task % shape.kv_heads};
}

Matrix head_of(Matrix m, std::int64_t row, std::int64_t rows, std::int64_t head,
               std::int64_t width) {
  return {m.row(row) + head * width, rows, width, m.stride};
}

// c (+)= alpha op(a) op(b)
void multiply(bool transpose_a, bool transpose_b, float alpha, Matrix a, Matrix b, float beta,
              Matrix c) {
  cblas_sgemm(CblasRowMajor, transpose_a ? CblasTrans : CblasNoTrans,
              transpose_b ? CblasTrans : CblasNoTrans, static_cast<int>(c.rows),
              static_cast<int>(c.cols), static_cast<int>(transpose_a ? a.rows : a.cols), alpha,
              a.data, static_cast<int>(a.stride), b.data, static_cast<int>(b.stride), beta, c.data,
              static_cast<int>(c.stride));
}

// Zeroes the scores outside [from, to).
void clear_others(float* scores, std::int64_t from, std::int64_t to, std::int64_t all) {
  std::fill(scores, scores + from, 0.0F);
  std::fill(scores + to, scores + all, 0.0F);
}

// Softmax of a row of scores over its keys from `from` to `to`. Returns the log-sum-exp.
float softmax(float* scores, std::int64_t from, std::int64_t to, std::int64_t all) {
  const float most = *std::max_element(scores + from, scores + to);
  double sum = 0;
  for (std::int64_t j = from; j < to; ++j) {
    scores[j] = std::exp(scores[j] - most);
    sum += static_cast<double>(scores[j]);
  }
  const auto scale = static_cast<float>(1.0 / sum);
  for (std::int64_t j = from; j < to; ++j) scores[j] *= scale;
  clear_others(scores, from, to, all);
  return most + static_cast<float>(std::log(sum));
}

float scale_of(AttentionShape shape) {
  return 1.0F / std::sqrt(static_cast<float>(shape.head_dim));
}

// The scores of `rows` queries from `first` on; each sees the keys from the beginning of its
// document to its own position. Keys that none of them sees are left out; the others are counted
// from `first_key`.
struct Block {
  std::int64_t first = 0;
  std::int64_t rows = 0;
  std::int64_t before = 0;                  // keys before the first query's own
  std::int64_t first_key = 0;               // of the sequence
  const std::int32_t* documents = nullptr;  // of the queries
  [[nodiscard]] std::int64_t keys() const { return before + first + rows - first_key; }
  [[nodiscard]] std::int64_t seen_from(std::int64_t row) const {
    return documents == nullptr ? 0 : documents[row] - first_key;
  }
  [[nodiscard]] std::int64_t seen_to(std::int64_t row) const {
    return before + first + row + 1 - first_key;
  }
};

template <class Visit>
void for_blocks(AttentionShape shape, Tokens documents, std::int64_t first_row, Visit visit) {
  for (std::int64_t first = 0; first < shape.queries; first += kQueries) {
    Block block{first, std::min(kQueries, shape.queries - first), shape.keys - shape.queries};
    if (documents.data != nullptr) {
      block.documents = documents.data + first_row + first;
      block.first_key = block.documents[0];
    }
    visit(block);
  }
}

constexpr std::int64_t kRotateRows = 64;

}  // namespace

void attention(Device& device, AttentionShape shape, Matrix q, Matrix k, Matrix v, Tokens documents,
               Matrix o, Matrix log_sum_exp) {
  device.executed(step::OpKind::kAttention, {q, k, v, documents}, {o, log_sum_exp});
  const std::int64_t width = shape.head_dim;
  const std::int64_t shared = shape.heads / shape.kv_heads;
  const std::int64_t tasks = q.rows / shape.queries * shape.kv_heads;
  device.run(tasks, [&](std::int64_t task) {
    const Place at = place_of(task, shape);
    std::vector<float> memory(static_cast<std::size_t>(kQueries * shape.keys));
    for (std::int64_t head = at.kv_head * shared; head < (at.kv_head + 1) * shared; ++head) {
      for_blocks(shape, documents, at.first_row, [&](const Block& block) {
        const std::int64_t row = at.first_row + block.first;
        const std::int64_t key = at.first_key + block.first_key;
        const Matrix scores{memory.data(), block.rows, block.keys(), block.keys()};
        const Matrix keys = head_of(k, key, block.keys(), at.kv_head, width);
        const Matrix values = head_of(v, key, block.keys(), at.kv_head, width);
        multiply(false, true, scale_of(shape), head_of(q, row, block.rows, head, width), keys, 0,
                 scores);
        for (std::int64_t i = 0; i < block.rows; ++i) {
          log_sum_exp.row(row + i)[head] =
              softmax(scores.row(i), block.seen_from(i), block.seen_to(i), block.keys());
        }
        multiply(false, false, 1, scores, values, 0, head_of(o, row, block.rows, head, width));
      });
    }
  });
}

void attention_grad(Device& device, AttentionShape shape, Matrix q, Matrix k, Matrix v, Matrix o,
                    Matrix log_sum_exp, Matrix d_o, Tokens documents, AttentionGrads grads) {
  device.executed(step::OpKind::kAttentionGrad, {q, k, v, o, log_sum_exp, d_o, documents},
                  {grads.dq, grads.dk, grads.dv});
  const std::int64_t width = shape.head_dim;
  const std::int64_t shared = shape.heads / shape.kv_heads;
  const std::int64_t tasks = q.rows / shape.queries * shape.kv_heads;
  const float scale = scale_of(shape);
  device.run(tasks, [&](std::int64_t task) {
    const Place at = place_of(task, shape);
    std::vector<float> memory(static_cast<std::size_t>(2 * kQueries * shape.keys));
    for (std::int64_t i = 0; i < shape.keys; ++i) {
      std::fill_n(grads.dk.row(at.first_key + i) + at.kv_head * width, width, 0.0F);
      std::fill_n(grads.dv.row(at.first_key + i) + at.kv_head * width, width, 0.0F);
    }
    for (std::int64_t head = at.kv_head * shared; head < (at.kv_head + 1) * shared; ++head) {
      for_blocks(shape, documents, at.first_row, [&](const Block& block) {
        const std::int64_t row = at.first_row + block.first;
        const std::int64_t key = at.first_key + block.first_key;
        const Matrix p{memory.data(), block.rows, block.keys(), block.keys()};
        const Matrix dp{p.data + kQueries * shape.keys, block.rows, block.keys(), block.keys()};
        const Matrix keys = head_of(k, key, block.keys(), at.kv_head, width);
        const Matrix values = head_of(v, key, block.keys(), at.kv_head, width);
        const Matrix queries = head_of(q, row, block.rows, head, width);
        const Matrix dout = head_of(d_o, row, block.rows, head, width);
        const Matrix out = head_of(o, row, block.rows, head, width);
        multiply(false, true, scale, queries, keys, 0, p);
        multiply(false, true, 1, dout, values, 0, dp);
        for (std::int64_t i = 0; i < block.rows; ++i) {
          double along = 0;
          for (std::int64_t c = 0; c < width; ++c) {
            along += static_cast<double>(dout.row(i)[c]) * static_cast<double>(out.row(i)[c]);
          }
          const float log_sum = log_sum_exp.row(row + i)[head];
          for (std::int64_t j = block.seen_from(i); j < block.seen_to(i); ++j) {
            p.row(i)[j] = std::exp(p.row(i)[j] - log_sum);
            dp.row(i)[j] = p.row(i)[j] * (dp.row(i)[j] - static_cast<float>(along));
          }
          for (const Matrix& m : {p, dp}) {
            clear_others(m.row(i), block.seen_from(i), block.seen_to(i), block.keys());
          }
        }
        multiply(true, false, 1, p, dout, 1,
                 head_of(grads.dv, key, block.keys(), at.kv_head, width));
        multiply(true, false, scale, dp, queries, 1,
                 head_of(grads.dk, key, block.keys(), at.kv_head, width));
        multiply(false, false, scale, dp, keys, 0, head_of(grads.dq, row, block.rows, head, width));
      });
    }
  });
}

// The first and second half of a head are the real and imaginary parts of complex numbers, which
// are rotated by position, as in the published Llama weights.
void rotate(Device& device, const Rotation& rotation, int direction, Matrix heads) {
  device.executed(direction > 0 ? step::OpKind::kRotate : step::OpKind::kRotateGrad, {}, {heads});
  const auto half = static_cast<std::int64_t>(rotation.frequencies.size());
  const std::int64_t count = heads.cols / (2 * half);
  device.ranges(heads.rows, kRotateRows, [&](std::int64_t first, std::int64_t last) {
    std::vector<float> turn(static_cast<std::size_t>(2 * half));
    for (std::int64_t t = first; t < last; ++t) {
      const auto position = static_cast<double>(rotation.part.position(t));
      for (std::int64_t i = 0; i < half; ++i) {
        const double angle = position * rotation.frequencies[static_cast<std::size_t>(i)];
        turn[static_cast<std::size_t>(i)] = static_cast<float>(std::cos(angle));
        turn[static_cast<std::size_t>(half + i)] =
            static_cast<float>(std::sin(angle)) * static_cast<float>(direction);
      }
      for (std::int64_t head = 0; head < count; ++head) {
        float* real = heads.row(t) + head * 2 * half;
        float* imaginary = real + half;
        for (std::int64_t i = 0; i < half; ++i) {
          const float cosine = turn[static_cast<std::size_t>(i)];
          const float sine = turn[static_cast<std::size_t>(half + i)];
          const float x = real[i];
          const float y = imaginary[i];
          real[i] = x * cosine - y * sine;
          imaginary[i] = y * cosine + x * sine;
        }
      }
    }
  });
}

}  // namespace assay::train::cpu
