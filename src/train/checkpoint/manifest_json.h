// The JSON shared by manifests (manifest.h) and the notes of ranks (rank_note.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "train/checkpoint/manifest.h"

namespace assay::checkpoint {

// The document with its own hash appended as the last key, so that changes are detected.
std::string sealed_text(base::Json document);
// The document without that key; fails if the hash is wrong. Errors name `where`.
base::Result<base::Json> unsealed(const std::string& text, const std::string& where);

// Nothing unless the key holds a non-negative integer, or a string.
std::optional<std::int64_t> count_in(const base::Json& object, const char* key);
std::optional<std::string> text_in(const base::Json& object, const char* key);

base::Json files_json(std::span<const FileRecord> files);
base::Result<std::vector<FileRecord>> files_in(const base::Json& document,
                                               const std::string& where);

base::Json parts_json(std::span<const StoredPart> parts);
// Pieces must be sorted by first element, and lie in one of the files. Gaps and overlaps of runs
// are left to check_complete().
base::Result<std::vector<StoredPart>> parts_in(const base::Json& document,
                                               std::span<const FileRecord> files,
                                               const std::string& where);
// Fails unless the pieces of each tensor cover it exactly once.
base::Result<void> check_complete(std::span<const StoredPart> parts, const std::string& where);

base::Error bad_manifest(const std::string& where, std::string what);

}  // namespace assay::checkpoint
