// Schedule: in which order the arms of a block run, and how their environments are made equally
// large. All of it is a function of seed and block, so an experiment that is resumed goes on as it
// would have gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace assay::compare {

// A permutation of 0 … arms-1, each equally likely.
std::vector<std::size_t> order_of_block(std::uint64_t seed, std::int64_t block, std::size_t arms);

// What the kernel puts above a new process's stack for its arguments and environment, with a
// pointer for each: where the stack begins, and with it the speed of some programs, depends on it.
std::size_t start_size(std::span<const std::string> arguments,
                       std::span<const std::string> environment);

// A variable that makes each of `sizes` the same: "ASSAY_COMPARE_PAD=xxx…", one per arm. All arms
// of a block get the same extra length, another one in every block, so that no single place of the
// stack decides about an experiment.
std::vector<std::string> paddings(std::span<const std::size_t> sizes, std::uint64_t seed,
                                  std::int64_t block);

}  // namespace assay::compare
