// TensorSet: the tensors of one part of a checkpoint ("weights"), whichever files and ranks they
// were written by. Used by one thread at a time.
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
  // Of files that have whole tensors: what is in them.
  static base::Result<TensorSet> of_files(std::shared_ptr<const ReadLock> lock,
                                          std::filesystem::path folder,
                                          std::span<const std::string> files);
  // Of files that have pieces: what the manifest says. A file is opened when it is read from.
  static TensorSet of_pieces(std::shared_ptr<const ReadLock> lock, std::filesystem::path folder,
                             StoredPart part);

  [[nodiscard]] const std::vector<StoredTensor>& tensors() const { return tensors_; }
  // Null if there is no such tensor.
  [[nodiscard]] const StoredTensor* find(std::string_view name) const;
  // Copies `target.size()` bytes of one of these tensors, from its byte `offset` on, out of as many
  // files as it takes.
  [[nodiscard]] base::Result<void> read(const StoredTensor& tensor, std::int64_t offset,
                                        std::span<std::byte> target) const;

 private:
  TensorSet(std::shared_ptr<const ReadLock> lock, std::filesystem::path folder)
      : lock_(std::move(lock)), folder_(std::move(folder)) {}
  void index();
  // What a piece has of the bytes that read() is asked for.
  [[nodiscard]] base::Result<void> read_from(const StoredTensor& tensor, const Piece& piece,
                                             std::int64_t offset,
                                             std::span<std::byte> target) const;
  base::Result<const SafetensorsFile*> opened(const std::string& file) const;

  std::shared_ptr<const ReadLock> lock_;
  std::filesystem::path folder_;
  std::vector<StoredTensor> tensors_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
  // Kept open, up to some number: a checkpoint of thousands of ranks has more files than a process
  // may open.
  mutable std::map<std::string, std::unique_ptr<SafetensorsFile>, std::less<>> open_;
};

}  // namespace assay::checkpoint
