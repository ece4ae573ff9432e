// Resolves a command-line argument: a run (number, "last", @STAGE, --name, uid), a file (path), or
// a content (the first digits of its BLAKE3); a label stands for any of them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "hash/digest.h"
#include "store/run.h"
#include "store/store.h"

namespace assay::lineage {

// A content, and the path where the newest run left or read it; or a folder that runs left files
// in.
struct Artifact {
  std::optional<hash::Digest> blake3;  // none: the last run that changed the path deleted it
  std::string path;
  std::int64_t size = 0;
  bool by_path = false;    // named by its path: the file there may have another content now
  bool is_folder = false;  // without a digest; the files are store::files_below()
};

using RunOrArtifact = std::variant<store::RunId, Artifact>;

// Paths are tried relative to `directory`, then to the project's root. Prefixes of uids and
// contents need at least 4 digits. Both "not found" and "ambiguous" are usage errors.
base::Result<store::RunId> resolve_run(store::Store& store, std::string_view text);
base::Result<Artifact> resolve_artifact(store::Store& store, std::string_view text,
                                        const std::filesystem::path& directory);
// A run if `text` names one, else an artifact.
base::Result<RunOrArtifact> resolve_name(store::Store& store, std::string_view text,
                                         const std::filesystem::path& directory);

}  // namespace assay::lineage
