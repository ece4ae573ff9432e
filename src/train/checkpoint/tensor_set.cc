#include "train/checkpoint/tensor_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace assay::checkpoint {
namespace {

constexpr std::size_t kMostOpenFiles = 128;

}  // namespace

base::Result<TensorSet> TensorSet::of_files(std::shared_ptr<const ReadLock> lock,
                                            std::filesystem::path folder,
                                            std::span<const std::string> files) {
  TensorSet set(std::move(lock), std::move(folder));
  for (const std::string& name : files) {
    ASSAY_TRY(const SafetensorsFile* file, set.opened(name));
    for (const TensorPlace& place : file->header().tensors) {
      set.tensors_.push_back({place.info, {{name, {0, place.info.elements()}}}});
    }
  }
  set.index();
  return set;
}

TensorSet TensorSet::of_pieces(std::shared_ptr<const ReadLock> lock, std::filesystem::path folder,
                               StoredPart part) {
  TensorSet set(std::move(lock), std::move(folder));
  set.tensors_ = std::move(part.tensors);
  set.index();
  return set;
}

void TensorSet::index() {
  // Of a name in two files, the first.
  for (std::size_t i = 0; i < tensors_.size(); ++i) by_name_.emplace(tensors_[i].info.name, i);
}

const StoredTensor* TensorSet::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

base::Result<const SafetensorsFile*> TensorSet::opened(const std::string& file) const {
  if (const auto found = open_.find(file); found != open_.end()) return found->second.get();
  if (open_.size() >= kMostOpenFiles) open_.clear();
  ASSAY_TRY(base::UniqueFd fd, lock_->open(file));
  ASSAY_TRY(SafetensorsFile opened,
            SafetensorsFile::open(std::move(fd), (folder_ / file).string()));
  const auto [place, ignored] =
      open_.emplace(file, std::make_unique<SafetensorsFile>(std::move(opened)));
  return place->second.get();
}

base::Result<void> TensorSet::read(const StoredTensor& tensor, std::int64_t offset,
                                   std::span<std::byte> target) const {
  if (offset < 0 || offset > *tensor.info.bytes() ||
      static_cast<std::int64_t>(target.size()) > *tensor.info.bytes() - offset) {
    return base::fail(base::failed_error(
        folder_.string(), fmt::format("tensor '{}' has {} bytes, fewer than its model needs",
                                      tensor.info.name, *tensor.info.bytes())));
  }
  const std::int64_t size = dtype_bytes(tensor.info.dtype);
  auto piece = std::upper_bound(
      tensor.pieces.begin(), tensor.pieces.end(), offset / size,
      [](std::int64_t element, const Piece& one) { return element < one.elements.end(); });
  while (!target.empty()) {
    ASSAY_CHECK(piece != tensor.pieces.end(), "pieces make up the tensor");
    const TensorInfo entry = entry_of(tensor.info, piece->elements);
    ASSAY_TRY(const SafetensorsFile* file, opened(piece->file));
    const TensorPlace* place = file->find(entry.name);
    if (place == nullptr || place->info != entry) {
      return base::fail(
          base::failed_error((folder_ / piece->file).string(),
                             fmt::format("has no '{}' of {} bytes", entry.name, *entry.bytes()),
                             "the checkpoint is damaged; use another"));
    }
    const std::int64_t within = offset - piece->elements.first * size;
    const auto count = std::min(target.size(), static_cast<std::size_t>(place->bytes() - within));
    ASSAY_TRY_VOID(file->read(*place, within, target.first(count)));
    target = target.subspan(count);
    offset += static_cast<std::int64_t>(count);
    ++piece;
  }
  return {};
}

}  // namespace assay::checkpoint
