// The products of all experts on Hopper: how the results are divided into tiles, and the order in
// which a cluster of blocks computes them (grouped_kernel.cuh).
#pragma once

#include "train/cuda/vectors.cuh"

namespace assay::train::cuda {

// As in grouped_product.h: rows times weights, whose elements lie along the sum; gradients of rows,
// where the weights' lie across it; gradients of weights, where both operands' do.
enum class GroupedForm : std::uint8_t { kRows, kRowGradients, kWeightGradients };

struct GroupedArguments {
  const std::int32_t* first_rows;  // of pieces of experts, and the end
  Half* c;
  std::int64_t stride;  // of c
  int experts;
  int pieces;  // of an expert's rows
  int height;  // of c: of an expert's gradient; not used if c has the rows of experts
  int width;   // of c
  int inner;   // elements of a sum; not used if sums are over the rows of experts
  int tall;    // tiles below each other that are computed before the next ones beside them
  bool adds;
};

namespace grouped {

constexpr int kPiece = 64;                               // rows of a warpgroup
constexpr int kWide = 256;                               // columns of a tile
constexpr int kDeep = 64;                                // elements of the sums in a stage
constexpr int kWarpgroup = 128;                          // threads
constexpr int kMultipliers = 2;                          // warpgroups that multiply
constexpr int kCluster = 2;                              // blocks
constexpr int kTall = kPiece * kMultipliers * kCluster;  // rows of a tile
constexpr int kThreads = (1 + kMultipliers) * kWarpgroup;
constexpr int kStages = 4;
constexpr std::uint32_t kBox = kPiece * kDeep * 2;  // bytes that are copied at once
constexpr std::uint32_t kBoxRow = 128;              // bytes
constexpr std::uint32_t kBoxGroup = 8 * kBoxRow;    // rows that are swizzled together
constexpr std::uint32_t kBoxesA = kMultipliers;
constexpr std::uint32_t kStage = (kBoxesA + kWide / kPiece) * kBox;
constexpr std::size_t kShared = kBoxGroup + kStages * (kStage + 16);
// 168 at the start, of which the copying warpgroup leaves most to the others.
constexpr int kRegistersToCopy = 56;
constexpr int kRegistersToMultiply = 224;

struct Tile {
  int expert;
  int first;  // row of the expert
  int rows;   // of the expert
  int row;    // of the tile: among the expert's, or its gradient's
  int col;
};

// The tiles of a cluster. Those that take the time of a whole one are dealt out to clusters in
// turns, and so are those by themselves that take half of it, as the last rows of an expert and the
// last columns may: however rows are spread, every cluster gets as much of both as others.
template <GroupedForm kForm>
class Tiles {
 public:
  static constexpr bool kSumsRows = kForm == GroupedForm::kWeightGradients;

  __device__ Tiles(const GroupedArguments& a)
      : a_(a),
        step_(static_cast<int>(gridDim.x) / kCluster),
        whole_(static_cast<int>(blockIdx.x) / kCluster),
        half_(step_ - 1 - whole_),
        wide_(tiles_in(a.width, kWide)),
        beside_((a.width + kWide - 1) / kWide) {}

  __device__ bool next(Tile& tile) {
    while (whole_ >= whole_end_ && half_ >= half_end_) {
      if (++tile_.expert == a_.experts) return false;
      const std::int32_t* first = a_.first_rows + tile_.expert * a_.pieces;
      tile_.first = __ldg(first);
      tile_.rows = __ldg(first + a_.pieces) - tile_.first;
      const int rows = rows_of(tile_);
      below_ = tiles_in(rows, kTall);
      short_ = rows > below_ * kTall ? beside_ : 0;
      whole_begin_ = whole_end_;
      whole_end_ += below_ * wide_;
      half_begin_ = half_end_;
      half_end_ += short_ + (beside_ - wide_) * below_;
    }
    int row = 0;
    int col = 0;
    if (whole_ < whole_end_) {
      const int at = whole_ - whole_begin_;
      const int band = at / (a_.tall * wide_);
      const int in_band = at - band * a_.tall * wide_;
      const int tall = min(a_.tall, below_ - band * a_.tall);
      row = band * a_.tall + in_band % tall;
      col = in_band / tall;
      whole_ += step_;
    } else {
      const int at = half_ - half_begin_;
      row = at < short_ ? below_ : at - short_;
      col = at < short_ ? at : wide_;
      half_ += step_;
    }
    tile = tile_;
    tile.row = row * kTall;
    tile.col = col * kWide;
    return true;
  }
  // Stages of a tile's sums.
  [[nodiscard]] __device__ int stages(const Tile& tile) const {
    return ((kSumsRows ? tile.rows : a_.inner) + kDeep - 1) / kDeep;
  }
  // The first row, of the tile's expert, that this warpgroup of this block has.
  [[nodiscard]] static __device__ int row_of(const Tile& tile, int multiplier, int rank) {
    return tile.row + (multiplier * kCluster + rank) * kPiece;
  }
  [[nodiscard]] __device__ int rows_of(const Tile& tile) const {
    return kSumsRows ? a_.height : tile.rows;
  }
  // The last tile beside others may be narrow.
  [[nodiscard]] __device__ bool is_narrow(const Tile& tile) const {
    return a_.width - tile.col <= kWide / 2;
  }

 private:
  // What is left counts if it is more than half a tile.
  static __device__ int tiles_in(int size, int tile) { return (size + tile / 2 - 1) / tile; }

  const GroupedArguments& a_;
  int step_;
  int whole_;  // the next ones, of all experts'
  int half_;
  int wide_;    // whole tiles beside each other
  int beside_;  // all of them
  int below_ = 0;
  int short_ = 0;  // half tiles beside each other that have an expert's last rows
  int whole_begin_ = 0;
  int whole_end_ = 0;
  int half_begin_ = 0;
  int half_end_ = 0;
  Tile tile_{-1, 0, 0, 0, 0};
};

}  // namespace grouped
}  // namespace assay::train::cuda
