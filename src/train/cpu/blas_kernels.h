// OpenBLAS chooses its kernels by processor model when it is loaded. For models newer than itself
// it falls back to kernels of 2004, a fifth as fast.
#pragma once

namespace assay::train::cpu {

// True if the program should be restarted: the environment now selects better kernels. False if the
// choice is good or was made by the user.
bool better_kernels_after_restart();

}  // namespace assay::train::cpu
