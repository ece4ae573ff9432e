#include "train/checkpoint/tensor_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

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
  // If a name occurs in two files, the first one counts.
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
  const std::int64_t end = offset + static_cast<std::int64_t>(target.size());
  if (std::ranges::any_of(tensor.pieces, [](const Piece& p) { return p.elements.in_runs(); })) {
    for (const Piece& piece : tensor.pieces) {
      ASSAY_TRY_VOID(read_from(tensor, piece, offset, target));
    }
    return {};
  }
  auto piece = std::upper_bound(
      tensor.pieces.begin(), tensor.pieces.end(), offset / size,
      [](std::int64_t element, const Piece& one) { return element < one.elements.end(); });
  for (; piece != tensor.pieces.end() && piece->elements.first * size < end; ++piece) {
    ASSAY_TRY_VOID(read_from(tensor, *piece, offset, target));
  }
  return {};
}

base::Result<void> TensorSet::read_from(const StoredTensor& tensor, const Piece& piece,
                                        std::int64_t offset, std::span<std::byte> target) const {
  const std::int64_t size = dtype_bytes(tensor.info.dtype);
  const std::int64_t end = offset + static_cast<std::int64_t>(target.size());
  const ElementRange& e = piece.elements;
  if (e.end() * size <= offset || e.first * size >= end) return {};
  const TensorInfo entry = entry_of(tensor.info, e);
  ASSAY_TRY(const SafetensorsFile* file, opened(piece.file));
  const TensorPlace* place = file->find(entry.name);
  if (place == nullptr || place->info != entry) {
    return base::fail(
        base::failed_error((folder_ / piece.file).string(),
                           fmt::format("has no '{}' of {} bytes", entry.name, *entry.bytes()),
                           "the checkpoint is damaged; use another"));
  }
  // In bytes of the tensor; in the file runs are contiguous.
  const std::int64_t run = (e.in_runs() ? e.run : e.count) * size;
  const std::int64_t runs = e.count * size / run;
  const std::int64_t apart = e.apart * size;
  const std::int64_t first = e.first * size;
  const std::int64_t skipped =
      apart > 0 && offset > first ? std::min(runs, (offset - first) / apart) : 0;
  for (std::int64_t i = skipped; i < runs; ++i) {
    const std::int64_t begin = first + i * apart;
    if (begin >= end) break;
    const std::int64_t from = std::max(begin, offset);
    const std::int64_t to = std::min(begin + run, end);
    if (from >= to) continue;
    ASSAY_TRY_VOID(file->read(*place, i * run + from - begin,
                              target.subspan(static_cast<std::size_t>(from - offset),
                                             static_cast<std::size_t>(to - from))));
  }
  return {};
}

}  // namespace assay::checkpoint
