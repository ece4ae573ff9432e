// Keys and values with context parallelism: from the order in which ranks have them to sequence
// order, and their gradients back.
#include <algorithm>

#include "train/cpu/kernels.h"

namespace assay::train::cpu {
namespace {

constexpr std::int64_t kKeyRows = 64;

// The position in its sequence of a row in a matrix that holds one rank's tokens after the other's.
struct KeyPlace {
  std::int64_t sequence = 0;
  std::int64_t position = 0;
};

KeyPlace key_place(std::int64_t row, std::int64_t sequences, std::int64_t piece,
                   std::int64_t ranks) {
  const std::int64_t of_rank = 2 * piece * sequences;
  const step::SequencePart part = step::part_of_sequence(2 * piece * ranks, {row / of_rank, ranks});
  return {row % of_rank / part.tokens, part.position(row)};
}

}  // namespace

void pack_keys(Device& device, Matrix k, Matrix v, Matrix packed) {
  device.executed(step::OpKind::kPackKeys, {k, v}, {packed});
  device.ranges(packed.rows, kKeyRows, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) {
      std::copy_n(k.row(t), k.cols, packed.row(t));
      std::copy_n(v.row(t), v.cols, packed.row(t) + k.cols);
    }
  });
}

void order_keys(Device& device, std::int64_t sequences, std::int64_t piece, Matrix by_rank,
                Matrix in_order) {
  device.executed(step::OpKind::kOrderKeys, {by_rank}, {in_order});
  const std::int64_t ranks = by_rank.rows / (2 * piece * sequences);
  device.ranges(by_rank.rows, kKeyRows, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      const KeyPlace to = key_place(row, sequences, piece, ranks);
      std::copy_n(by_rank.row(row), by_rank.cols,
                  in_order.row(to.sequence * 2 * piece * ranks + to.position));
    }
  });
}

void split_keys_grad(Device& device, std::int64_t sequences, std::int64_t piece, Matrix first,
                     Matrix second, Matrix by_rank) {
  device.executed(step::OpKind::kSplitKeysGrad, {first, second}, {by_rank});
  const std::int64_t ranks = by_rank.rows / (2 * piece * sequences);
  // A piece contributes gradients to the keys that it has seen.
  const auto gradient = [&](const Matrix& of, const KeyPlace& place) -> const float* {
    const std::int64_t seen = of.rows / sequences;
    return place.position < seen ? of.row(place.sequence * seen + place.position) : nullptr;
  };
  device.ranges(by_rank.rows, kKeyRows, [&](std::int64_t from, std::int64_t last) {
    for (std::int64_t row = from; row < last; ++row) {
      const KeyPlace place = key_place(row, sequences, piece, ranks);
      float* to = by_rank.row(row);
      std::fill_n(to, by_rank.cols, 0.0F);
      for (const float* addend : {gradient(first, place), gradient(second, place)}) {
        if (addend == nullptr) continue;
        for (std::int64_t i = 0; i < by_rank.cols; ++i) to[i] += addend[i];
      }
    }
  });
}

void sum_keys_grad(Device& device, Matrix addends, Matrix sum) {
  device.executed(step::OpKind::kSumKeysGrad, {addends}, {sum});
  device.ranges(sum.rows, kKeyRows, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) {
      float* to = sum.row(t);
      std::copy_n(addends.row(0) + t * sum.cols, sum.cols, to);
      for (std::int64_t rank = 1; rank < addends.rows; ++rank) {
        const float* from = addends.row(rank) + t * sum.cols;
        for (std::int64_t i = 0; i < sum.cols; ++i) to[i] += from[i];
      }
    }
  });
}

}  // namespace assay::train::cpu
