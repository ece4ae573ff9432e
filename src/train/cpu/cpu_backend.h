// The CPU backend: fp32, one arena, a pool of threads.
#pragma once

#include <memory>

#include "comm/communicator.h"
#include "train/backend.h"

namespace assay::train::cpu {

// `threads` 0: one per processor that this process may use. `ranks`: the communicator of programs
// of several ranks; must outlive the backend.
std::unique_ptr<Backend> make_cpu_backend(int threads = 0, comm::Communicator* ranks = nullptr);

}  // namespace assay::train::cpu
