// Reading checkpoints: listing, verifying, choosing the one to resume from, and their tensors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/checkpoint/folder_lock.h"
#include "train/checkpoint/manifest.h"
#include "train/checkpoint/tensor_set.h"

namespace assay::checkpoint {

struct VerifyOptions {
  unsigned threads = 0;  // 0: all processors of this process
  // Called with the number of bytes just read, concurrently from several threads.
  std::function<void(std::int64_t)> progress = {};
  // When several processes verify a checkpoint together: the share of this one. Files are
  // distributed so that all processes read about the same number of bytes.
  struct VerifyPart {
    std::size_t index = 0;
    std::size_t of = 1;
  };
  VerifyPart share = {};
  std::vector<std::string> parts = {};  // only the files of these; empty: all files
  std::stop_token stop = {};            // stopping is an error
};

// An open checkpoint is locked: retention does not remove it while this object lives.
class Checkpoint {
 public:
  // Checks the manifest, and that its files exist with the recorded length. verify() checks
  // contents.
  static base::Result<Checkpoint> open(const std::filesystem::path& folder);

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  [[nodiscard]] const Manifest& manifest() const { return manifest_; }
  // Hashes the files. The error names the first file whose content differs from what was written.
  [[nodiscard]] base::Result<void> verify(const VerifyOptions& options = {}) const;
  // The names of the parts, and one of them. Its contents are not verified: verification.h does
  // that while they are read.
  [[nodiscard]] std::vector<std::string> parts() const;
  [[nodiscard]] base::Result<TensorSet> part(const std::string& name) const;
  // The files that hold tensors of these parts.
  [[nodiscard]] std::set<std::string> files_of(const std::vector<std::string>& parts) const;
  // A small file of the checkpoint, checked against its hash; nothing if there is none.
  [[nodiscard]] base::Result<std::optional<std::string>> text(const std::string& name) const;

 private:
  Checkpoint(std::filesystem::path folder, ReadLock lock, Manifest manifest)
      : folder_(std::move(folder)),
        lock_(std::make_shared<const ReadLock>(std::move(lock))),
        manifest_(std::move(manifest)) {}

  std::filesystem::path folder_;
  std::shared_ptr<const ReadLock> lock_;
  Manifest manifest_;
};

// Opens and hashes a checkpoint.
base::Result<Manifest> verify(const std::filesystem::path& folder,
                              const VerifyOptions& options = {});

struct Listed {
  std::int64_t step = 0;
  std::filesystem::path folder;
  base::Result<Manifest> manifest;  // or the damage, if open() detects any
};
// Ascending by step.
base::Result<std::vector<Listed>> list(const std::filesystem::path& root);

enum class Check { kContents, kLengths };  // hash every byte, or compare lengths only

struct Latest {
  std::optional<Checkpoint> checkpoint;  // none: there is no intact checkpoint
  std::vector<base::Error> damaged;      // errors of newer checkpoints, which were skipped
};
// `before`: only those of earlier steps.
base::Result<Latest> latest(const std::filesystem::path& root, Check check = Check::kContents,
                            std::optional<std::int64_t> before = {});

// What users may name: a checkpoint, a folder of checkpoints, or the folder of a run.
bool is_checkpoint(const std::filesystem::path& path);
// The checkpoints folder if the path is a run, else the path itself.
std::filesystem::path root_of(const std::filesystem::path& path);
// The checkpoint itself, or the newest one in the folder; contents are not verified.
base::Result<Checkpoint> open_newest(const std::filesystem::path& path);

}  // namespace assay::checkpoint
