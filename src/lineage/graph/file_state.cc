#include "lineage/graph/file_state.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "store/artifacts.h"
#include "store/run_reader.h"
#include "store/streams.h"

namespace assay::lineage {
namespace {

using Kind = FileState::Kind;

struct Last {
  store::RunId run = 0;
  bool made = true;
};

// The newest run that left this content at this path, or else read it there.
base::Result<std::optional<Last>> last_with(store::Store& store, const hash::Digest& content,
                                            const std::string& path) {
  ASSAY_TRY(const auto makers, store::producers_of(store, content));
  for (const store::FileAt& made : makers) {
    if (made.path == path) return Last{made.run, true};
  }
  ASSAY_TRY(const auto readers, store::consumers_of(store, content));
  for (const store::FileAt& read : readers) {
    if (read.path == path) return Last{read.run, false};
  }
  return std::nullopt;
}

std::optional<std::int64_t> modified_ns(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return base::nanoseconds(status.st_mtim);
}

base::Result<FileState> read_folder_state(store::Store& store, DiskFiles& disk,
                                          const Artifact& artifact) {
  ASSAY_TRY(const auto files, store::files_below(store, artifact.path));
  FileState state{.kind = Kind::kUnchanged, .files = std::ssize(files)};
  for (const store::FileAt& file : files) {
    state.run = std::max(state.run, file.run);
    if (!file.blake3) continue;
    const OnDisk found = disk.check(file.path, *file.blake3, file.size);
    if (found == OnDisk::kMissing) ++state.gone;
    if (found != OnDisk::kChanged) continue;
    ++state.changed;
    state.modified_unix_ns = std::max(state.modified_unix_ns, modified_ns(file.path).value_or(0));
  }
  if (state.changed > 0) state.kind = Kind::kChanged;
  if (state.gone == state.files) state.kind = Kind::kGone;
  if (state.gone > 0 && state.kind == Kind::kUnchanged) state.kind = Kind::kChanged;
  return state;
}

std::string folder_text(const FileState& state, const std::string& when) {
  if (state.kind == Kind::kUnchanged) {
    return fmt::format("unchanged since run {}: {} files", state.run, state.files);
  }
  if (state.kind == Kind::kGone) {
    return fmt::format("gone: none of the {} files that runs left here exists", state.files);
  }
  std::string text = fmt::format("not what run {} left: of {} files", state.run, state.files);
  if (state.changed > 0) {
    text += fmt::format(", {} changed by hand (or by something unrecorded) since {}", state.changed,
                        when);
  }
  if (state.gone > 0) text += fmt::format(", {} gone", state.gone);
  return text;
}

base::Result<FileState> compare(store::Store& store, DiskFiles& disk, Artifact& artifact) {
  if (!artifact.by_path) return FileState{};
  if (artifact.is_folder) return read_folder_state(store, disk, artifact);
  FileState state;
  ASSAY_TRY(const auto newest, store::latest_at(store, artifact.path));
  if (artifact.blake3) {
    ASSAY_TRY(const auto last, last_with(store, *artifact.blake3, artifact.path));
    if (last) state.run = last->run;
    if (last) state.made = last->made;
  } else if (newest) {
    state.run = newest->run;
  }
  const auto modified = modified_ns(artifact.path);
  if (!modified) {
    state.kind = Kind::kGone;
    return state;
  }
  state.modified_unix_ns = *modified;
  state.now = disk.content_of(artifact.path);
  if (state.now && state.now == artifact.blake3) {
    state.kind = Kind::kUnchanged;
    return state;
  }
  state.kind = Kind::kChanged;
  if (!state.now) return state;
  if (state.run != 0 && artifact.blake3 &&
      DiskFiles::begins(artifact.path, *artifact.blake3, artifact.size)) {
    ASSAY_TRY(const store::RunRecord run, store::head_of(store, state.run));
    state.others_follow = store::handed_down_paths(run.redirects).contains(artifact.path);
  }
  ASSAY_TRY(const auto earlier, last_with(store, *state.now, artifact.path));
  if (!earlier) return state;
  state.kind = Kind::kEarlier;
  state.run = earlier->run;
  state.made = earlier->made;
  state.newest = newest ? newest->run : 0;
  artifact.blake3 = state.now;
  struct stat status {};
  if (::stat(artifact.path.c_str(), &status) == 0) artifact.size = status.st_size;
  return state;
}

}  // namespace

std::string FileState::text(const std::string& when) const {
  if (files > 0) return folder_text(*this, when);
  const char* const did = made ? "left" : "read";
  const std::string by = status == store::RunStatus::kDone
                             ? fmt::format("run {}", run)
                             : fmt::format("run {} ({})", run, store::name_of(status));
  switch (kind) {
    case Kind::kNotChecked:
      return {};
    case Kind::kUnchanged:
      return made ? fmt::format("unchanged since {}", by)
                  : fmt::format("unchanged since {} read it", by);
    case Kind::kEarlier:
      return fmt::format("this is what {} {}; run {} left something else here later", by, did,
                         newest);
    case Kind::kChanged:
      if (others_follow) {
        return fmt::format("begins with what {} {}; lines of other programs follow", by, did);
      }
      return fmt::format(
          "this is not what {} {}: changed by hand (or by something unrecorded) since {}", by, did,
          when);
    case Kind::kGone:
      return fmt::format("gone: {} {} it, and it was removed since", by, did);
  }
  return {};
}

base::Result<FileState> read_file_state(store::Store& store, DiskFiles& disk, Artifact& artifact) {
  ASSAY_TRY(FileState state, compare(store, disk, artifact));
  if (state.run == 0 || !state.made || artifact.is_folder) return state;
  ASSAY_TRY(const store::RunRecord run, store::head_of(store, state.run));
  state.status = run.status;
  return state;
}

base::Json to_json(const FileState& state) {
  constexpr std::array kNames = {"", "unchanged", "earlier", "changed", "gone"};
  if (state.kind == Kind::kNotChecked) return nullptr;
  return {{"state", kNames[static_cast<std::size_t>(state.kind)]},
          {"run", state.run == 0 ? base::Json() : base::Json(state.run)},
          {"failed", state.status != store::RunStatus::kDone},
          {"blake3", state.now ? base::Json(state.now->hex()) : base::Json()},
          {"modified_at", state.modified_unix_ns == 0
                              ? base::Json()
                              : base::Json(base::utc_text(state.modified_unix_ns))}};
}

}  // namespace assay::lineage
