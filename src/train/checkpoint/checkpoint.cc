#include "train/checkpoint/checkpoint.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "base/file.h"
#include "hash/blake3.h"
#include "hash/file.h"
#include "train/checkpoint/folder_name.h"
#include "train/checkpoint/shards.h"

namespace assay::checkpoint {
namespace {

namespace fs = std::filesystem;

base::Error damaged(const fs::path& file, std::string what) {
  return base::failed_error(file.string(), std::move(what),
                            "the checkpoint is damaged; use another");
}

base::Result<void> check_length(const ReadLock& lock, const fs::path& path,
                                const FileRecord& record) {
  ASSAY_TRY(const base::UniqueFd fd, lock.open(record.name));
  ASSAY_TRY(const struct stat status, base::regular_status(fd.get(), path.string()));
  if (status.st_size == record.bytes) return {};
  return base::fail(damaged(
      path, fmt::format("has {} bytes, but {} were written", status.st_size, record.bytes)));
}

}  // namespace

base::Result<Checkpoint> Checkpoint::open(const fs::path& folder) {
  ASSAY_TRY(ReadLock lock, ReadLock::take(folder));
  const std::string where = (folder / kManifestName).string();
  ASSAY_TRY(const std::string text, lock.manifest());
  ASSAY_TRY(Manifest manifest, parse_manifest(text, where));
  if (manifest.written_unix_ns == 0) {
    ASSAY_TRY(manifest.written_unix_ns, lock.written_unix_ns());
  }
  const auto named = step_of(folder.filename().string());
  if (named && *named != manifest.state.step) {
    return base::fail(damaged(where, fmt::format("holds step {}", manifest.state.step)));
  }
  for (const FileRecord& file : manifest.files) {
    ASSAY_TRY_VOID(check_length(lock, folder / file.name, file));
  }
  return Checkpoint(folder, std::move(lock), std::move(manifest));
}

base::Result<void> Checkpoint::verify(const VerifyOptions& options) const {
  std::vector<std::int64_t> bytes(options.share.of);  // that each process has to read
  const std::set<std::string> wanted = files_of(options.parts);
  for (const FileRecord& file : manifest_.files) {
    if (!options.parts.empty() && !wanted.contains(file.name)) continue;
    const auto least = std::ranges::min_element(bytes);
    *least += file.bytes;
    if (static_cast<std::size_t>(least - bytes.begin()) != options.share.index) continue;
    const fs::path path = folder_ / file.name;
    ASSAY_TRY(const base::UniqueFd fd, lock_->open(file.name));
    ASSAY_TRY(const hash::FileDigest found, hash::hash_file(fd.get(), path.string(),
                                                            {.threads = options.threads,
                                                             .progress = options.progress,
                                                             .stop = options.stop}));
    if (found.changed) return base::fail(damaged(path, "changed while it was read"));
    if (found.digest != file.blake3 || found.size.count() != file.bytes) {
      return base::fail(damaged(path, "differs from what was written"));
    }
  }
  return {};
}

std::vector<std::string> Checkpoint::parts() const {
  std::vector<std::string> names;
  for (const StoredPart& part : manifest_.parts) names.push_back(part.name);
  if (!names.empty()) return names;
  for (const FileRecord& file : manifest_.files) {
    const auto shard = parse_shard_name(file.name);
    if (shard && std::ranges::find(names, shard->part) == names.end()) names.push_back(shard->part);
  }
  return names;
}

std::set<std::string> Checkpoint::files_of(const std::vector<std::string>& parts) const {
  std::set<std::string> names;
  const auto is_wanted = [&](const std::string& part) {
    return std::ranges::find(parts, part) != parts.end();
  };
  for (const StoredPart& part : manifest_.parts) {
    if (!is_wanted(part.name)) continue;
    for (const StoredTensor& tensor : part.tensors) {
      for (const Piece& piece : tensor.pieces) names.insert(piece.file);
    }
  }
  if (!manifest_.parts.empty()) return names;
  for (const FileRecord& file : manifest_.files) {
    const auto shard = parse_shard_name(file.name);
    if (shard && is_wanted(shard->part)) names.insert(file.name);
  }
  return names;
}

base::Result<TensorSet> Checkpoint::part(const std::string& name) const {
  const auto stored = std::ranges::find(manifest_.parts, name, &StoredPart::name);
  if (stored != manifest_.parts.end()) return TensorSet::of_pieces(lock_, folder_, *stored);
  std::vector<std::string> files;
  std::int64_t expected = 0;
  for (const FileRecord& file : manifest_.files) {
    const auto shard = parse_shard_name(file.name);
    if (!manifest_.parts.empty() || !shard || shard->part != name) continue;
    expected = shard->count;
    files.push_back(file.name);
  }
  if (files.empty()) {
    return base::fail(base::usage_error(folder_.string(), fmt::format("has no part '{}'", name)));
  }
  if (static_cast<std::int64_t>(files.size()) != expected) {
    return base::fail(
        damaged(folder_, fmt::format("has {} of {} files of '{}'", files.size(), expected, name)));
  }
  return TensorSet::of_files(lock_, folder_, files);
}

base::Result<std::optional<std::string>> Checkpoint::text(const std::string& name) const {
  const auto record = std::ranges::find(manifest_.files, name, &FileRecord::name);
  if (record == manifest_.files.end()) return std::nullopt;
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;
  const fs::path path = folder_ / name;
  if (record->bytes > kMostBytes) return base::fail(damaged(path, "is too large to be a text"));
  ASSAY_TRY(const base::UniqueFd fd, lock_->open(name));
  std::string text(static_cast<std::size_t>(record->bytes), '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = ::read(fd.get(), text.data() + size, text.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return base::fail(base::system_error(path.string(), "cannot read", errno));
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  if (size < text.size() || hash::blake3(std::as_bytes(std::span(text))) != record->blake3) {
    return base::fail(damaged(path, "differs from what was written"));
  }
  return text;
}

base::Result<Manifest> verify(const fs::path& folder, const VerifyOptions& options) {
  ASSAY_TRY(const Checkpoint checkpoint, Checkpoint::open(folder));
  ASSAY_TRY_VOID(checkpoint.verify(options));
  return checkpoint.manifest();
}

base::Result<std::vector<Listed>> list(const fs::path& root) {
  ASSAY_TRY(const std::vector<std::int64_t> steps, steps_in(root));
  std::vector<Listed> found;
  for (const std::int64_t step : steps) {
    const fs::path folder = root / step_name(step);
    auto checkpoint = Checkpoint::open(folder);
    std::error_code ignored;
    if (!checkpoint && !fs::exists(folder, ignored)) continue;  // removed in the meantime
    if (checkpoint) {
      found.push_back({step, folder, checkpoint->manifest()});
    } else {
      found.push_back({step, folder, base::fail(checkpoint.error())});
    }
  }
  return found;
}

base::Result<Latest> latest(const fs::path& root, Check check, std::optional<std::int64_t> before) {
  ASSAY_TRY(const std::vector<std::int64_t> steps, steps_in(root));
  Latest result;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (before && *step >= *before) continue;
    const fs::path folder = root / step_name(*step);
    auto checkpoint = Checkpoint::open(folder);
    base::Result<void> whole;
    if (checkpoint && check == Check::kContents) whole = checkpoint->verify();
    if (checkpoint && whole) {
      result.checkpoint = std::move(*checkpoint);
      return result;
    }
    std::error_code ignored;
    if (!checkpoint && !fs::exists(folder, ignored)) continue;  // removed in the meantime
    result.damaged.push_back(checkpoint ? whole.error() : checkpoint.error());
  }
  return result;
}

bool is_checkpoint(const fs::path& path) {
  const fs::path plain = path.has_filename() ? path : path.parent_path();
  std::error_code ignored;
  return fs::exists(plain / kManifestName, ignored) || step_of(plain.filename().string());
}

fs::path root_of(const fs::path& path) {
  const fs::path plain = path.has_filename() ? path : path.parent_path();
  std::error_code ignored;
  return fs::is_directory(plain / "checkpoints", ignored) ? plain / "checkpoints" : plain;
}

base::Result<Checkpoint> open_newest(const fs::path& path) {
  if (is_checkpoint(path)) return Checkpoint::open(path.has_filename() ? path : path.parent_path());
  const fs::path root = root_of(path);
  ASSAY_TRY(const std::vector<std::int64_t> steps, steps_in(root));
  if (steps.empty()) {
    return base::fail(
        base::usage_error(path.string(), "has no checkpoints",
                          "expected a folder step-N, or a folder that contains some"));
  }
  return Checkpoint::open(root / step_name(steps.back()));
}

}  // namespace assay::checkpoint
