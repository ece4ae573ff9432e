// Writes a checkpoint: a folder ROOT/step-N of safetensors files and a manifest, whole or not
// there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "train/checkpoint/manifest.h"
#include "train/checkpoint/safetensors_header.h"
#include "train/checkpoint/tensor.h"

namespace assay::checkpoint {

// Tensors that belong together: "weights", "optimizer".
struct Part {
  std::string name;
  std::vector<Tensor> tensors;
  Metadata metadata = {};
};

struct Snapshot {
  TrainingState state;
  std::vector<Part> parts;
  // Waits until the tensors' bytes are there; empty: they are.
  std::function<base::Result<void>()> ready = {};
};

struct WriteOptions {
  // A part that is larger becomes several files.
  std::int64_t shard_bytes = 5'000'000'000;
  const base::Clock* clock = &base::system_clock();
};

struct Written {
  std::filesystem::path folder;
  std::int64_t bytes = 0;
};

// Makes the root if it is not there and removes what killed writers left in it. For the start of a
// training run: a root that vanishes later is not made again, for what vanished may be a disk.
base::Result<void> prepare_root(const std::filesystem::path& root);

// Afterwards the checkpoint is on the disk under its name, or there is no trace of it. One of the
// same step is replaced. Borrowed tensors stay as they are until this returns.
base::Result<Written> write_checkpoint(const std::filesystem::path& root, const Snapshot& snapshot,
                                       const WriteOptions& options = {});

}  // namespace assay::checkpoint
