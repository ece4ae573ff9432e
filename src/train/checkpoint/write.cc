#include "train/checkpoint/write.h"

#include <fmt/format.h>

#include <exception>
#include <set>
#include <utility>

#include "train/checkpoint/folder.h"
#include "train/checkpoint/output_file.h"
#include "train/checkpoint/safetensors_writer.h"
#include "train/checkpoint/shards.h"
#include "train/checkpoint/staging.h"

namespace assay::checkpoint {
namespace {

namespace fs = std::filesystem;

base::Result<void> write_part(const fs::path& folder, const SnapshotPart& part,
                              std::int64_t shard_bytes, std::vector<FileRecord>& files) {
  const std::vector<WeightShard> shards = plan_shards(part.name, part.tensors, shard_bytes);
  std::set<std::string_view> names;
  for (const Tensor& tensor : part.tensors) {
    if (names.insert(tensor.info.name).second) continue;
    return base::fail(
        base::usage_error(fmt::format("part '{}'", part.name),
                          fmt::format("two tensors are called '{}'", tensor.info.name)));
  }
  for (const WeightShard& shard : shards) {
    ASSAY_TRY(FileRecord file,
              write_safetensors(folder / shard.file, shard.tensors, part.metadata));
    files.push_back(std::move(file));
  }
  if (shards.size() == 1) return {};
  ASSAY_TRY(FileRecord index, write_small_file(folder / index_name(part.name), index_text(shards)));
  files.push_back(std::move(index));
  return {};
}

}  // namespace

base::Result<void> write_texts(const fs::path& folder, const Snapshot& snapshot,
                               std::vector<FileRecord>& files) {
  for (const TextFile& file : snapshot.texts) {
    ASSAY_TRY(FileRecord record, write_small_file(folder / file.name, *file.text));
    files.push_back(std::move(record));
  }
  return {};
}

base::Result<void> check_snapshot(const fs::path& root, const Snapshot& snapshot) {
  if (snapshot.state.step < 0 || snapshot.state.tokens < 0) {
    return base::fail(
        base::usage_error(root.string(), fmt::format("there is no step {} after {} tokens",
                                                     snapshot.state.step, snapshot.state.tokens)));
  }
  std::set<std::string> names;
  for (const SnapshotPart& part : snapshot.parts) {
    ASSAY_TRY_VOID(check_part_name(part.name));
    if (!names.insert(part.name).second) {
      return base::fail(
          base::usage_error(root.string(), fmt::format("two parts are called '{}'", part.name)));
    }
  }
  return {};
}

base::Result<void> prepare_root(const fs::path& root) {
  std::error_code error;
  const bool made = fs::create_directories(root, error);
  if (error)
    return base::fail(file_error(root.string(), "cannot create this folder", error.value()));
  if (made) {
    const fs::path parent = root.has_parent_path() ? root.parent_path() : fs::path(".");
    ASSAY_TRY_VOID(sync_folder(parent));
  }
  return sweep(root);
}

base::Result<Written> write_checkpoint(const fs::path& root, const Snapshot& snapshot,
                                       const WriteOptions& options) try {
  ASSAY_TRY_VOID(check_snapshot(root, snapshot));
  if (snapshot.ready) ASSAY_TRY_VOID(snapshot.ready());
  ASSAY_TRY(StagingFolder staging, StagingFolder::create(root, snapshot.state.step));
  Manifest manifest{snapshot.state, 0, {}};
  for (const SnapshotPart& part : snapshot.parts) {
    ASSAY_TRY_VOID(write_part(staging.path(), part, options.shard_bytes, manifest.files));
  }
  ASSAY_TRY_VOID(write_texts(staging.path(), snapshot, manifest.files));
  const std::string text = manifest_text(manifest);
  // An unreadable checkpoint must be noticed now, not when it is needed.
  ASSAY_TRY_VOID(parse_manifest(text, (staging.path() / kManifestName).string()));
  ASSAY_TRY_VOID(write_small_file(staging.path() / kManifestName, text));
  const std::int64_t bytes = manifest.bytes() + static_cast<std::int64_t>(text.size());
  ASSAY_TRY(fs::path folder, staging.commit());
  return Written{std::move(folder), bytes};
} catch (const std::exception& error) {
  // Thrown by the standard library when memory or threads run out.
  return base::fail(base::unfit_error(root.string(), error.what()));
}

}  // namespace assay::checkpoint
