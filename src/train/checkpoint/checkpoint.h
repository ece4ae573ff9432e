// Reading checkpoints: which there are, whether one is whole, which one to go on from, and its
// tensors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "train/checkpoint/folder_lock.h"
#include "train/checkpoint/manifest.h"
#include "train/checkpoint/safetensors_file.h"

namespace assay::checkpoint {

// The tensors of one part, over all of its files.
class TensorSet {
 public:
  struct Found {
    const SafetensorsFile* file = nullptr;
    const TensorPlace* place = nullptr;
  };

  // file->bytes(*place) or file->read(*place, …); nothing when there is no such tensor.
  [[nodiscard]] std::optional<Found> find(std::string_view name) const;
  [[nodiscard]] const std::vector<SafetensorsFile>& files() const { return files_; }

 private:
  friend class Checkpoint;
  std::vector<SafetensorsFile> files_;
};

struct VerifyOptions {
  unsigned threads = 0;  // 0: as many as this process may use
  // Told how many more bytes were read; by several threads at once.
  std::function<void(std::int64_t)> progress = {};
};

// An open checkpoint stays in place: retention leaves it alone as long as this object lives.
class Checkpoint {
 public:
  // The manifest is valid and its files are there, as long as it says. What is in them: verify().
  static base::Result<Checkpoint> open(const std::filesystem::path& folder);

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  [[nodiscard]] const Manifest& manifest() const { return manifest_; }
  // Hashes every file. The error names the one that is not what was written.
  [[nodiscard]] base::Result<void> verify(const VerifyOptions& options = {}) const;
  [[nodiscard]] base::Result<TensorSet> part(const std::string& name) const;

 private:
  Checkpoint(std::filesystem::path folder, ReadLock lock, Manifest manifest)
      : folder_(std::move(folder)), lock_(std::move(lock)), manifest_(std::move(manifest)) {}

  std::filesystem::path folder_;
  ReadLock lock_;
  Manifest manifest_;
};

// Opens and hashes one.
base::Result<Manifest> verify(const std::filesystem::path& folder,
                              const VerifyOptions& options = {});

struct Listed {
  std::int64_t step = 0;
  std::filesystem::path folder;
  base::Result<Manifest> manifest;  // or why it is damaged, as far as open() sees
};
// Ascending by step.
base::Result<std::vector<Listed>> list(const std::filesystem::path& root);

enum class Trust { kContents, kLengths };  // hash every byte, or believe lengths

struct Latest {
  std::optional<Checkpoint> checkpoint;  // nothing: there is no whole one
  std::vector<base::Error> damaged;      // newer ones that had to be passed over, a line each
};
base::Result<Latest> latest(const std::filesystem::path& root, Trust trust = Trust::kContents,
                            const VerifyOptions& options = {});

}  // namespace assay::checkpoint
