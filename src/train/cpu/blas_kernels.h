// OpenBLAS chooses its kernels by the processor's model when it is loaded. Of a model that is newer
// than itself it knows nothing and takes kernels of 2004, a fifth as fast.
#pragma once

namespace assay::train::cpu {

// Whether it should be loaded again, by starting the program anew: then the environment now names
// better kernels. False if it chose well, or was told by somebody.
bool better_kernels_after_restart();

}  // namespace assay::train::cpu
