// The CPU backend: fp32, one arena, a pool of threads.
#pragma once

#include <memory>

#include "train/backend.h"
#include "train/rank_groups.h"

namespace assay::train::cpu {

// `threads` 0: one per processor that this process may use. `groups`: for programs of several
// ranks; must outlive the backend.
std::unique_ptr<Backend> make_cpu_backend(int threads = 0, RankGroups* groups = nullptr);

// OpenBLAS chooses its kernels by processor model when it is loaded. For models newer than itself
// it falls back to kernels of 2004, a fifth as fast. Returns true if the program should be
// restarted: the environment now selects better kernels. False if the choice is good or was made by
// the user.
bool better_kernels_after_restart();

}  // namespace assay::train::cpu
