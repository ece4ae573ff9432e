// Writes a checkpoint, the folder ROOT/step-N of safetensors files and a manifest: completely or
// not at all.
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

// A named group of tensors: "weights", "optimizer".
struct Part {
  std::string name;
  std::vector<Tensor> tensors;
  Metadata metadata = {};
};

struct Snapshot {
  TrainingState state;
  std::vector<Part> parts;
  // Blocks until the tensors' bytes are complete; empty: they already are.
  std::function<base::Result<void>()> ready = {};
};

struct WriteOptions {
  // A larger part is divided into several files.
  std::int64_t shard_bytes = 5'000'000'000;
  const base::Clock* clock = &base::system_clock();
};

struct Written {
  std::filesystem::path folder;
  std::int64_t bytes = 0;
};

// Creates the root if needed and removes what killed writers left in it. For the start of a run: a
// root that disappears later is not created again, because it may be an unmounted disk.
base::Result<void> prepare_root(const std::filesystem::path& root);

// On success the checkpoint is on disk under its name; on failure nothing is left. A checkpoint of
// the same step is replaced. Borrowed tensors must not change until this returns.
base::Result<Written> write_checkpoint(const std::filesystem::path& root, const Snapshot& snapshot,
                                       const WriteOptions& options = {});

}  // namespace assay::checkpoint
