// Writes a checkpoint, the folder ROOT/step-N of safetensors files and a manifest: completely or
// not at all.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/checkpoint/manifest.h"
#include "train/checkpoint/safetensors_header.h"
#include "train/checkpoint/tensor.h"

namespace assay::checkpoint {

class StagingFolder;

// A named group of tensors: "weights", "optimizer".
struct SnapshotPart {
  std::string name;
  std::vector<Tensor> tensors;
  Metadata metadata = {};
  // If several ranks write the snapshot: every tensor of the part, on whichever rank. Needed by
  // rank 0.
  std::vector<TensorInfo> all = {};
};

// A rank's share of a checkpoint that several ranks write together (shared_write.h).
struct RankOfWrite {
  std::int64_t rank = 0;
  std::int64_t ranks = 1;
  std::string staging;                              // the hidden folder's name, for all ranks
  std::shared_ptr<StagingFolder> folder = nullptr;  // rank 0: deleted with it if uncommitted
};

// A small file that belongs to the checkpoint.
struct TextFile {
  std::string name;
  std::shared_ptr<const std::string> text;
};

struct Snapshot {
  TrainingState state;
  std::vector<SnapshotPart> parts;
  std::vector<TextFile> texts = {};  // with several ranks, only rank 0 writes them
  // Blocks until the tensors' bytes are complete; empty: they already are.
  std::function<base::Result<void>()> ready = {};
  std::optional<RankOfWrite> share = {};  // nothing: this rank writes the whole checkpoint
};

struct WriteOptions {
  // A part larger than this is divided into several files.
  std::int64_t shard_bytes = 5'000'000'000;
  // How long rank 0 waits without progress from any other rank; shorter once a stop is requested,
  // because the job is ending and some ranks may be gone.
  std::chrono::milliseconds timeout = std::chrono::minutes(5);
  std::chrono::milliseconds timeout_when_stopping = std::chrono::seconds(3);
  std::stop_token stop = {};
};

struct Written {
  std::filesystem::path folder;
  std::int64_t bytes = 0;
};

// Creates the root if needed and removes what killed writers left in it. Call it when a run starts:
// a root that disappears later is not created again, because it may be an unmounted disk.
base::Result<void> prepare_root(const std::filesystem::path& root);

// Writes a snapshot's small files and appends them to `files`.
base::Result<void> write_texts(const std::filesystem::path& folder, const Snapshot& snapshot,
                               std::vector<FileRecord>& files);

// Checks what must hold for any snapshot, whether one rank or several write it.
base::Result<void> check_snapshot(const std::filesystem::path& root, const Snapshot& snapshot);

// On success the checkpoint is on disk under its name; on failure nothing is left. A checkpoint of
// the same step is replaced. Borrowed tensors must not change until this returns.
base::Result<Written> write_checkpoint(const std::filesystem::path& root, const Snapshot& snapshot,
                                       const WriteOptions& options = {});

}  // namespace assay::checkpoint
