#include "train/checkpoint/shared_write.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <map>
#include <utility>

#include "train/checkpoint/folder_name.h"
#include "train/checkpoint/output_file.h"
#include "train/checkpoint/rank_note.h"
#include "train/checkpoint/safetensors_writer.h"
#include "train/checkpoint/shards.h"
#include "train/checkpoint/staging.h"

namespace assay::checkpoint {
namespace {

namespace fs = std::filesystem;

// The tensors as entries of a file, with the names and shapes of their pieces.
std::vector<Tensor> entries_of(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> entries = tensors;
  for (Tensor& entry : entries) {
    if (entry.elements) entry.info = entry_of(entry.info, *entry.elements);
  }
  return entries;
}

base::Result<void> check_pieces(const fs::path& folder, const SnapshotPart& part) {
  for (const Tensor& tensor : part.tensors) {
    if (!tensor.elements && tensor.info.bytes()) continue;
    const ElementRange piece = tensor.elements.value_or(ElementRange{});
    if (is_piece_of(tensor.info, piece)) continue;
    return base::fail(base::usage_error(
        folder.string(), fmt::format("elements {} to {} are not a piece of tensor '{}'",
                                     piece.first, piece.end(), tensor.info.name)));
  }
  return {};
}

// The files of this rank for one part, recorded in its note.
base::Result<void> write_own_part(const fs::path& folder, const RankOfWrite& share,
                                  const SnapshotPart& part, std::int64_t shard_bytes,
                                  RankNote& note) {
  if (part.tensors.empty()) return {};
  ASSAY_TRY_VOID(check_pieces(folder, part));
  const std::string name =
      fmt::format("{}-rank-{:05}-of-{:05}", part.name, share.rank, share.ranks);
  const std::vector<Tensor> entries = entries_of(part.tensors);
  std::vector<std::string> file_of;
  for (const WeightShard& shard : plan_shards(name, entries, shard_bytes)) {
    ASSAY_TRY(FileRecord file,
              write_safetensors(folder / shard.file, shard.tensors, part.metadata));
    file_of.insert(file_of.end(), shard.tensors.size(), file.name);
    note.files.push_back(std::move(file));
  }
  StoredPart stored{part.name, {}};
  for (std::size_t i = 0; i < part.tensors.size(); ++i) {
    const Tensor& tensor = part.tensors[i];
    const Piece piece{file_of[i],
                      tensor.elements.value_or(ElementRange{0, tensor.info.elements()})};
    // Pieces of one tensor follow each other.
    if (stored.tensors.empty() || stored.tensors.back().info.name != tensor.info.name) {
      stored.tensors.push_back({tensor.info, {}});
    }
    stored.tensors.back().pieces.push_back(piece);
  }
  note.parts.push_back(std::move(stored));
  return {};
}

base::Result<RankNote> write_own_files(const fs::path& root, const fs::path& folder,
                                       const Snapshot& snapshot, const WriteOptions& options) try {
  const RankOfWrite& share = *snapshot.share;
  RankNote note{.rank = share.rank, .ranks = share.ranks, .step = snapshot.state.step};
  ASSAY_TRY_VOID(check_snapshot(root, snapshot));
  if (snapshot.ready) ASSAY_TRY_VOID(snapshot.ready());
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    return base::fail(base::unfit_error(
        folder.string(), fmt::format("rank {} does not see the folder of rank 0", share.rank),
        "all ranks must share the file system of --out"));
  }
  for (const SnapshotPart& part : snapshot.parts) {
    ASSAY_TRY_VOID(write_own_part(folder, share, part, options.shard_bytes, note));
  }
  ASSAY_TRY_VOID(sync_folder(folder));
  return note;
} catch (const std::exception& error) {
  // Thrown by the standard library when memory or threads run out.
  return base::fail(base::unfit_error(root.string(), error.what()));
}

// Frees the space taken by a failed rank's files, which its note may need.
void remove_own_files(const fs::path& folder, const RankOfWrite& share) {
  const std::string mark = fmt::format("-rank-{:05}-of-{:05}", share.rank, share.ranks);
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (at->path().filename().string().find(mark) == std::string::npos) continue;
    fs::remove(at->path(), ignored);
  }
}

base::Result<std::int64_t> write_own(const fs::path& root, const fs::path& folder,
                                     const Snapshot& snapshot, const WriteOptions& options) {
  const RankOfWrite& share = *snapshot.share;
  auto note = write_own_files(root, folder, snapshot, options);
  std::int64_t bytes = 0;
  if (note) {
    for (const FileRecord& file : note->files) bytes += file.bytes;
    const auto left = leave_note(folder, *note);
    if (left) return bytes;
    note = base::fail(left.error());
  }
  remove_own_files(folder, share);
  // If even this is impossible, rank 0 gives up when its patience ends.
  static_cast<void>(leave_note(folder, {.rank = share.rank,
                                        .ranks = share.ranks,
                                        .step = snapshot.state.step,
                                        .failure = note.error().line()}));
  return base::fail(note.error());
}

// The pieces of all ranks, in the order in which rank 0 lists the tensors.
base::Result<void> add_pieces(const fs::path& folder, const Snapshot& snapshot,
                              std::span<const RankNote> notes, Manifest& manifest) {
  std::map<std::pair<std::string_view, std::string_view>, StoredTensor*> places;
  for (const SnapshotPart& part : snapshot.parts) {
    StoredPart& stored = manifest.parts.emplace_back(StoredPart{part.name, {}});
    for (const TensorInfo& info : part.all) stored.tensors.push_back({info, {}});
  }
  for (StoredPart& part : manifest.parts) {
    for (StoredTensor& tensor : part.tensors) places[{part.name, tensor.info.name}] = &tensor;
  }
  for (const RankNote& note : notes) {
    for (const StoredPart& part : note.parts) {
      for (const StoredTensor& tensor : part.tensors) {
        const auto place = places.find({part.name, tensor.info.name});
        if (place == places.end() || place->second->info != tensor.info) {
          return base::fail(base::failed_error(
              folder.string(), fmt::format("rank {} has a tensor '{}' that rank 0 does not expect",
                                           note.rank, tensor.info.name)));
        }
        std::vector<Piece>& pieces = place->second->pieces;
        pieces.insert(pieces.end(), tensor.pieces.begin(), tensor.pieces.end());
      }
    }
    manifest.files.insert(manifest.files.end(), note.files.begin(), note.files.end());
  }
  for (auto& [ignored, tensor] : places) {
    std::ranges::sort(tensor->pieces, {}, [](const Piece& one) { return one.elements.first; });
  }
  return {};
}

base::Result<Written> commit_shared(const Snapshot& snapshot, const WriteOptions& options) try {
  const RankOfWrite& share = *snapshot.share;
  StagingFolder& staging = *share.folder;
  const fs::path folder = staging.path();
  ASSAY_TRY(const std::vector<RankNote> notes,
            collect_notes(folder, {share.ranks, snapshot.state.step}, options));
  Manifest manifest{snapshot.state, 0, {}, share.ranks};
  ASSAY_TRY_VOID(add_pieces(folder, snapshot, notes, manifest));
  ASSAY_TRY_VOID(write_texts(folder, snapshot, manifest.files));
  for (const FileRecord& file : manifest.files) {
    std::error_code error;
    const auto size = fs::file_size(folder / file.name, error);
    if (!error && static_cast<std::int64_t>(size) == file.bytes) continue;
    return base::fail(
        base::failed_error((folder / file.name).string(), "differs from what its rank wrote"));
  }
  const std::string text = manifest_text(manifest);
  // An unreadable checkpoint must be noticed now, not when it is needed.
  ASSAY_TRY_VOID(parse_manifest(text, (folder / kManifestName).string()));
  for (const RankNote& note : notes) {
    std::error_code ignored;
    fs::remove(folder / rank_note_name(note.rank), ignored);
  }
  ASSAY_TRY_VOID(write_small_file(folder / kManifestName, text));
  const std::int64_t bytes = manifest.bytes() + static_cast<std::int64_t>(text.size());
  ASSAY_TRY(fs::path committed, staging.commit());
  return Written{std::move(committed), bytes};
} catch (const std::exception& error) {
  return base::fail(base::unfit_error(snapshot.share->staging, error.what()));
}

}  // namespace

base::Result<RankOfWrite> begin_shared(const fs::path& root, std::int64_t step,
                                       std::int64_t ranks) {
  ASSAY_TRY(StagingFolder staging, StagingFolder::create(root, step));
  RankOfWrite share{.rank = 0, .ranks = ranks, .staging = staging.path().filename().string()};
  share.folder = std::make_shared<StagingFolder>(std::move(staging));
  return share;
}

base::Result<Written> write_shared(const fs::path& root, const Snapshot& snapshot,
                                   const WriteOptions& options) {
  const RankOfWrite& share = *snapshot.share;
  const fs::path folder = root / share.staging;
  const auto own = write_own(root, folder, snapshot, options);
  if (share.rank != 0) {
    if (!own) return base::fail(own.error());
    return Written{root / step_name(snapshot.state.step), *own};
  }
  // Also after a failure of its own: the folder must not be removed while others write to it.
  auto written = commit_shared(snapshot, options);
  if (!written) share.folder->discard();
  if (!own) return base::fail(own.error());
  return written;
}

}  // namespace assay::checkpoint
