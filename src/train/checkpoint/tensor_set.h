// TensorSet: the tensors of one part of a checkpoint ("weights"), regardless of the files and ranks
// they were written by. Used by one thread at a time.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "train/checkpoint/folder_lock.h"
#include "train/checkpoint/manifest.h"
#include "train/checkpoint/safetensors_file.h"

namespace assay::checkpoint {

class TensorSet {
 public:
  // From files with whole tensors, whose headers say what is in them.
  static base::Result<TensorSet> of_files(std::shared_ptr<const ReadLock> lock,
                                          std::filesystem::path folder,
                                          std::span<const std::string> files);
  // From files with pieces, as the manifest describes them. Files are opened when first read.
  static TensorSet of_pieces(std::shared_ptr<const ReadLock> lock, std::filesystem::path folder,
                             StoredPart part);

  [[nodiscard]] const std::vector<StoredTensor>& tensors() const { return tensors_; }
  // Null if there is no such tensor.
  [[nodiscard]] const StoredTensor* find(std::string_view name) const;
  // Copies `target.size()` bytes of one of these tensors, starting at byte `offset`, from one or
  // more files.
  [[nodiscard]] base::Result<void> read(const StoredTensor& tensor, std::int64_t offset,
                                        std::span<std::byte> target) const;

 private:
  TensorSet(std::shared_ptr<const ReadLock> lock, std::filesystem::path folder)
      : lock_(std::move(lock)), folder_(std::move(folder)) {}
  void index();
  // Copies those of the requested bytes that this piece holds.
  [[nodiscard]] base::Result<void> read_from(const StoredTensor& tensor, const Piece& piece,
                                             std::int64_t offset,
                                             std::span<std::byte> target) const;
  base::Result<const SafetensorsFile*> opened(const std::string& file) const;

  std::shared_ptr<const ReadLock> lock_;
  std::filesystem::path folder_;
  std::vector<StoredTensor> tensors_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
  // Only a limited number of files is kept open: a checkpoint of thousands of ranks has more files
  // than a process may open.
  mutable std::map<std::string, std::unique_ptr<SafetensorsFile>, std::less<>> open_;
};

}  // namespace assay::checkpoint
