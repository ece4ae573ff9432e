// The order of the arms within a block, and padding that makes their environments equally large.
// Both are functions of seed and block, so a resumed experiment continues the same schedule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::compare {

// A permutation of 0 … arms-1, each equally likely.
std::vector<std::size_t> order_of_block(std::uint64_t seed, std::int64_t block, std::size_t arms);

// The bytes of arguments and environment that the kernel puts above a new process's stack,
// including a pointer for each. They determine the address of the stack, on which the speed of some
// programs depends.
std::size_t start_size(std::span<const std::string> arguments,
                       std::span<const std::string> environment);

inline constexpr std::string_view kPadVariable = "ASSAY_COMPARE_PAD";
// A variable per arm, "ASSAY_COMPARE_PAD=xxx…", that makes all `sizes` equal. Every block adds a
// random length, the same for all its arms, so that no single stack address decides an experiment.
std::vector<std::string> paddings(std::span<const std::size_t> sizes, std::uint64_t seed,
                                  std::int64_t block);

}  // namespace assay::compare
