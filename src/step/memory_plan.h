// MemoryPlan: the position of every buffer of a program in one arena. Buffers that are never alive
// at the same time may share memory; lifetimes are derived from the ops.
#pragma once

#include <cstdint>
#include <vector>

#include "step/program.h"

namespace assay::step {

struct MemoryPlan {
  std::vector<std::int64_t> offset;  // bytes into the arena, by BufferId
  std::int64_t bytes = 0;            // of the whole arena
  // Bytes by Storage; for activations the size of the memory that they share.
  std::int64_t of_storage[kStorages] = {};

  [[nodiscard]] std::int64_t of(Storage storage) const {
    return of_storage[static_cast<int>(storage)];
  }
};

MemoryPlan plan_memory(const Program& program);

}  // namespace assay::step
