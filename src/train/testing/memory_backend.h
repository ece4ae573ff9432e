// MemoryBackend: a device with memory of any precision but no arithmetic, for tests of writing and
// reading a device's state.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "train/backend.h"
#include "train/float_bits.h"
#include "train/init.h"
#include "train/testing/state_pieces.h"

namespace assay::train::testing {

class MemoryBackend : public Backend {
 public:
  base::Result<std::int64_t> available_bytes() override { return 0; }
  base::Result<std::int64_t> extra_bytes(const step::Program&) override { return 0; }
  base::Result<void> prepare(const step::Program& program, const step::MemoryPlan&) override {
    for (const step::Buffer& buffer : program.buffers) {
      types_.push_back(buffer.type);
      memory_.emplace_back(static_cast<std::size_t>(buffer.bytes()));
    }
    return {};
  }
  base::Result<void> write(const step::View& to, std::span<const std::byte> from) override {
    EXPECT_EQ(from.size(), bytes_in(to));
    std::memcpy(place(to), from.data(), from.size());
    return {};
  }
  base::Result<void> read(const step::View& from, std::span<std::byte> to) override {
    EXPECT_EQ(to.size(), bytes_in(from));
    std::memcpy(to.data(), place(from), to.size());
    return {};
  }
  // The contract of Backend::draw(), implemented element by element.
  base::Result<bool> draw(const InitialDraw& draw) override {
    if (!draws) return false;
    std::vector<std::uint16_t> high;
    std::vector<std::uint16_t> low;
    for (const checkpoint::ElementRange& piece : draw.pieces) {
      for (std::int64_t i = 0; i < piece.count; ++i) {
        float value = 0;
        initial_values(draw.parameter, draw.seed, element_of(piece, i), {&value, 1});
        high.push_back(split_master(value).high);
        low.push_back(split_master(value).low);
      }
    }
    ASSAY_TRY_VOID(write(draw.weight, std::as_bytes(std::span(high))));
    if (!draw.remainder) return true;
    const std::span<const std::uint16_t> own = std::span<const std::uint16_t>(low).subspan(
        static_cast<std::size_t>(draw.remainder_at),
        static_cast<std::size_t>(draw.remainder->elements()));
    ASSAY_TRY_VOID(write(*draw.remainder, std::as_bytes(own)));
    return true;
  }
  void begin_step(const StepSettings&) override {}
  void set_batch(const step::Op&, const MicroBatch&) override {}
  base::Result<void> execute(const step::Op&) override { return {}; }
  base::Result<Scalars> finish_step() override { return Scalars{}; }
  [[nodiscard]] std::string description() const override { return "memory"; }

  bool draws = false;

 private:
  [[nodiscard]] std::size_t size_in(const step::View& view) const {
    return static_cast<std::size_t>(step::bytes_of(types_[static_cast<std::size_t>(view.buffer)]));
  }
  [[nodiscard]] std::size_t bytes_in(const step::View& view) const {
    EXPECT_EQ(view.stride, view.cols);  // parameters and their state have no gaps
    return static_cast<std::size_t>(view.elements()) * size_in(view);
  }
  std::byte* place(const step::View& view) {
    std::vector<std::byte>& buffer = memory_[static_cast<std::size_t>(view.buffer)];
    const std::size_t at = static_cast<std::size_t>(view.offset) * size_in(view);
    EXPECT_LE(at + bytes_in(view), buffer.size());
    return buffer.data() + at;
  }

  std::vector<step::Dtype> types_;
  std::vector<std::vector<std::byte>> memory_;
};

}  // namespace assay::train::testing
