// The kernels of x86-64 processors; kernels.cc selects those that the processor can run.
#pragma once

#include "hash/kernel.h"

namespace assay::hash {

extern const Kernel kSse41Kernel;
extern const Kernel kAvx2Kernel;
extern const Kernel kAvx512Kernel;

}  // namespace assay::hash
