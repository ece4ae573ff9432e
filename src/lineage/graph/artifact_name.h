// What a person means by a word on the command line: a run (number, "last", @STEP, --name, uid), a
// file (path), or a content (the first digits of its BLAKE3); a label stands for either.
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

// A content and where it was last seen: as the newest run left it, or read it.
struct Artifact {
  std::optional<hash::Digest> blake3;  // none: the last run to touch the path deleted it
  std::string path;
  std::int64_t size = 0;
};

using Named = std::variant<store::RunId, Artifact>;

// Paths are tried from `directory`, then from the project's root. At least 4 digits of a digest or
// of a uid are needed. Errors are usage errors, whether nothing fits or several things do.
base::Result<store::RunId> run_named(store::Store& store, std::string_view text);
base::Result<Artifact> artifact_named(store::Store& store, std::string_view text,
                                      const std::filesystem::path& directory);
// A run if it names one, else an artifact.
base::Result<Named> anything_named(store::Store& store, std::string_view text,
                                   const std::filesystem::path& directory);

}  // namespace assay::lineage
