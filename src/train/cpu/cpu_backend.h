// The CPU backend: fp32, one arena, a pool of threads.
#pragma once

#include <memory>

#include "train/backend.h"
#include "train/rank_groups.h"

namespace assay::train::cpu {

// `threads` 0: one per processor that this process may use. `groups` is needed for programs of
// several ranks, and must outlive the backend.
std::unique_ptr<Backend> make_cpu_backend(int threads = 0, RankGroups* groups = nullptr);

// OpenBLAS chooses its kernels by processor model when it is loaded; for models that it does not
// know it falls back to kernels from 2004, which are five times slower. Returns true if the program
// should be restarted because the environment now selects better kernels; false if the choice is
// good or the user made it.
bool better_kernels_after_restart();

}  // namespace assay::train::cpu
