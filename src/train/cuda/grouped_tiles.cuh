// The products of all experts on Hopper: how the results are divided into tiles, and the order in
// which a cluster of blocks computes them (grouped_kernel.cuh).
#pragma once

#include "train/cuda/vectors.cuh"

namespace assay::train::cuda {

// The forms of grouped_product.h. kRows: both operands are contiguous along the summed dimension;
// kRowGradients: the weights are not; kWeightGradients: neither operand is.
enum class GroupedForm : std::uint8_t { kRows, kRowGradients, kWeightGradients };

struct GroupedArguments {
  const std::int32_t* first_rows;  // of each expert's pieces, then the end
  Half* c;
  std::int64_t stride;  // of c
  int experts;
  int pieces;  // pieces per expert
  int height;  // rows of c per expert, for weight gradients; unused otherwise
  int width;   // of c
  int inner;   // length of the sums; unused for weight gradients, which sum over rows
  int tall;    // height of a band, in tiles: a band is computed column by column
  bool adds;
};

namespace grouped {

constexpr int kPiece = 64;                               // rows per warpgroup
constexpr int kWide = 256;                               // columns per tile
constexpr int kDeep = 64;                                // inner elements per stage
constexpr int kWarpgroup = 128;                          // threads
constexpr int kMultipliers = 2;                          // warpgroups that multiply
constexpr int kCluster = 2;                              // blocks
constexpr int kTall = kPiece * kMultipliers * kCluster;  // rows of a tile
constexpr int kThreads = (1 + kMultipliers) * kWarpgroup;
constexpr int kStages = 4;
constexpr std::uint32_t kBox = kPiece * kDeep * 2;  // bytes per TMA copy
constexpr std::uint32_t kBoxRow = 128;              // bytes
constexpr std::uint32_t kBoxGroup = 8 * kBoxRow;    // eight rows are swizzled together
constexpr std::uint32_t kBoxesA = kMultipliers;
constexpr std::uint32_t kStage = (kBoxesA + kWide / kPiece) * kBox;
constexpr std::size_t kShared = kBoxGroup + kStages * (kStage + 16);
// Each thread starts with 168 registers; the copying warpgroup gives most of its own to the others.
constexpr int kRegistersToCopy = 56;
constexpr int kRegistersToMultiply = 224;

struct Tile {
  int expert;
  int first;  // first row of the expert
  int rows;   // number of rows of the expert
  int row;    // first row of the tile, relative to the expert's rows or to its weight gradient
  int col;
};

// The tiles of one cluster. Full tiles are assigned to clusters round-robin; so, separately, are
// tiles that take half the time, which the last rows of an expert or the last columns may form.
// Thus every cluster gets the same share of both, however the rows are distributed over experts.
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
  // Number of stages in a tile's sum.
  [[nodiscard]] __device__ int stages(const Tile& tile) const {
    return ((kSumsRows ? tile.rows : a_.inner) + kDeep - 1) / kDeep;
  }
  // The first row, relative to the expert, of this warpgroup of this block.
  [[nodiscard]] static __device__ int row_of(const Tile& tile, int multiplier, int rank) {
    return tile.row + (multiplier * kCluster + rank) * kPiece;
  }
  [[nodiscard]] __device__ int rows_of(const Tile& tile) const {
    return kSumsRows ? a_.height : tile.rows;
  }
  // The last tile of a row of tiles may be at most half as wide.
  [[nodiscard]] __device__ bool is_narrow(const Tile& tile) const {
    return a_.width - tile.col <= kWide / 2;
  }

 private:
  // Number of full tiles: a remainder counts as one if it is more than half a tile.
  static __device__ int tiles_in(int size, int tile) { return (size + tile / 2 - 1) / tile; }

  const GroupedArguments& a_;
  int step_;
  int whole_;  // index of the next full tile, over all experts
  int half_;
  int wide_;    // full tiles per row
  int beside_;  // all tiles per row
  int below_ = 0;
  int short_ = 0;  // half-height tiles that cover an expert's last rows
  int whole_begin_ = 0;
  int whole_end_ = 0;
  int half_begin_ = 0;
  int half_end_ = 0;
  Tile tile_{-1, 0, 0, 0, 0};
};

}  // namespace grouped
}  // namespace assay::train::cuda
