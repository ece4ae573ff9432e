#include "lineage/graph/resolve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <system_error>
#include <vector>

#include "base/text.h"
#include "store/artifacts.h"
#include "store/labels.h"
#include "store/run_reader.h"

namespace assay::lineage {
namespace {

namespace fs = std::filesystem;

// For uids and contents: fewer digits could match by accident.
constexpr std::size_t kShortestPrefix = 4;
constexpr std::size_t kCandidates = 5;

bool is_hex(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isxdigit(c) != 0; });
}

// The artifact of a content.
base::Result<Artifact> artifact_of(store::Store& store, const hash::Digest& content) {
  ASSAY_TRY(auto files, store::producers_of(store, content, 1));
  if (files.empty()) {
    ASSAY_TRY(files, store::consumers_of(store, content, 1));
  }
  if (files.empty()) return Artifact{content, "", 0};
  return Artifact{content, files[0].path, files[0].size};
}

base::Result<std::optional<Artifact>> by_path(store::Store& store, std::string_view text,
                                              const fs::path& directory) {
  if (text.empty()) return std::nullopt;
  const fs::path given(text);
  std::vector<fs::path> tries = {(directory / given).lexically_normal()};
  std::error_code error;
  // Paths are recorded without symbolic links.
  const fs::path real = fs::weakly_canonical(directory / given, error);
  if (!error) tries.push_back(real);
  tries.push_back((store.location().project / given).lexically_normal());
  for (const fs::path& path : tries) {
    ASSAY_TRY(const auto found, store::latest_at(store, path.native()));
    if (found) return Artifact{found->blake3, found->path, found->size, true};
  }
  for (fs::path path : tries) {
    if (!path.has_filename()) path = path.parent_path();  // "checkpoints/"
    ASSAY_TRY(const auto files, store::files_below(store, path.native()));
    if (files.empty()) continue;
    std::int64_t size = 0;
    for (const store::FileAt& file : files) size += file.size;
    return Artifact{std::nullopt, path.native(), size, true, true};
  }
  return std::nullopt;
}

base::Result<std::optional<Artifact>> by_digest(store::Store& store, std::string_view text) {
  if (!is_hex(text) || text.size() < kShortestPrefix || text.size() > 2 * hash::Digest::kSize) {
    return std::nullopt;
  }
  ASSAY_TRY(const auto found, store::contents_starting(store, text, kCandidates + 1));
  if (found.empty()) return std::nullopt;
  if (found.size() == 1) {
    ASSAY_TRY(Artifact artifact, artifact_of(store, found[0]));
    return artifact;
  }
  std::vector<std::string> candidates;
  for (const hash::Digest& digest : found) {
    if (candidates.size() == kCandidates) {
      candidates.emplace_back("…");
      break;
    }
    ASSAY_TRY(const Artifact artifact, artifact_of(store, digest));
    candidates.push_back(fmt::format("{} ({})", digest.hex().substr(0, 16),
                                     base::shortened_middle(artifact.path, 60)));
  }
  return base::fail(
      base::usage_error(fmt::format("'{}'", text), "several contents start with this",
                        fmt::format("give more digits: {}", fmt::join(candidates, ", "))));
}

base::Error unknown(std::string_view text, std::string_view what) {
  const std::string where = fmt::format("'{}'", base::shortened(text, 200));
  return base::usage_error(where, std::string(what), "see `assay log`");
}

}  // namespace

namespace {

// A report about runs is not what users mean by "last", even if they recorded it like any command.
bool is_page(const store::RunRecord& run) {
  return store::is_about_runs(run) ||
         (run.command.size() > 1 && fs::path(run.command[0]).filename() == "assay" &&
          run.command[1] == "report");
}

// As store::find_run(), except for "last".
base::Result<std::optional<store::RunId>> find_run_by_name(store::Store& store,
                                                           std::string_view text) {
  if (text != "last") return store::find_run(store, text);
  constexpr std::int64_t kFew = 20;
  for (const std::int64_t limit : {kFew, std::int64_t{-1}}) {
    ASSAY_TRY(const auto runs, store::list_runs(store, {.limit = limit}));
    for (const store::RunRecord& run : runs) {
      if (!is_page(run)) return run.id;
    }
    if (std::ssize(runs) < kFew) break;
  }
  return std::nullopt;
}

}  // namespace

base::Result<store::RunId> resolve_run(store::Store& store, std::string_view text) {
  ASSAY_TRY(const auto run, find_run_by_name(store, text));
  if (run) return *run;
  if (text == "last") {
    return base::fail(base::usage_error("", "no run has been recorded yet",
                                        "record one with: assay run -- COMMAND"));
  }
  const bool is_number = base::is_digits(text);
  ASSAY_TRY(const auto newest, store::find_run(store, "last"));
  if (is_number && newest) {
    return base::fail(base::usage_error(
        "", fmt::format("no run {}; the newest is {}", base::shortened(text, 200), *newest),
        "see `assay log`"));
  }
  if (is_number && !newest) return resolve_run(store, "last");
  base::Error error = unknown(text, "there is no such run");
  if (is_hex(text) && text.size() < kShortestPrefix) {
    error.hint = "give at least 4 digits of a uid";
  }
  return base::fail(std::move(error));
}

base::Result<Artifact> resolve_artifact(store::Store& store, std::string_view text,
                                        const fs::path& directory) {
  ASSAY_TRY(const auto label, store::find_label(store, text));
  if (label && std::holds_alternative<hash::Digest>(*label)) {
    return artifact_of(store, std::get<hash::Digest>(*label));
  }
  ASSAY_TRY(auto file, by_path(store, text, directory));
  if (file) return *std::move(file);
  ASSAY_TRY(auto content, by_digest(store, text));
  if (content) return *std::move(content);
  if (is_hex(text) && text.size() < kShortestPrefix) {
    return base::fail(base::usage_error(fmt::format("'{}'", text),
                                        "no recorded run has read or written this",
                                        "give at least 4 digits of a hash"));
  }
  return base::fail(unknown(text, "no recorded run has read or written this"));
}

base::Result<RunOrArtifact> resolve_name(store::Store& store, std::string_view text,
                                         const fs::path& directory) {
  ASSAY_TRY(const auto label, store::find_label(store, text));
  if (label && std::holds_alternative<hash::Digest>(*label)) {
    ASSAY_TRY(Artifact artifact, artifact_of(store, std::get<hash::Digest>(*label)));
    return artifact;
  }
  ASSAY_TRY(const auto run, find_run_by_name(store, text));
  if (!run && text == "last") return base::fail(resolve_run(store, text).error());
  ASSAY_TRY(auto file, by_path(store, text, directory));
  // Numbers and names mean runs; for a file of that name, write `./3`.
  if (run && (!file || !is_hex(text) || text.size() < kShortestPrefix)) return *run;
  if (file) return *std::move(file);
  ASSAY_TRY(auto content, by_digest(store, text));
  if (content) return *std::move(content);
  if (base::is_digits(text)) return base::fail(resolve_run(store, text).error());
  return base::fail(unknown(text, "neither a run nor a file that a run has read or written"));
}

}  // namespace assay::lineage
