// The backend of CPUs: fp32, one arena, threads of our own.
#pragma once

#include <memory>

#include "train/backend.h"

namespace assay::train::cpu {

// `threads` 0: one per processor that this process may use.
std::unique_ptr<Backend> make_cpu_backend(int threads = 0);

}  // namespace assay::train::cpu
