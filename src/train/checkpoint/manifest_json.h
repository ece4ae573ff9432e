// The JSON that a manifest (manifest.h) and the note of a rank (rank_note.h) are made of.
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

// A document with the hash of itself as its last key, so that changes to it are noticed.
std::string sealed_text(base::Json document);
// The document without that key. Errors name `where`.
base::Result<base::Json> unsealed(const std::string& text, const std::string& where);

// Nothing unless the key has a number of that kind, or a text.
std::optional<std::int64_t> count_in(const base::Json& object, const char* key);
std::optional<std::string> text_in(const base::Json& object, const char* key);

base::Json files_json(std::span<const FileRecord> files);
base::Result<std::vector<FileRecord>> files_in(const base::Json& document,
                                               const std::string& where);

base::Json parts_json(std::span<const StoredPart> parts);
// Pieces in order and without overlap, each in one of the files; they may leave elements out.
base::Result<std::vector<StoredPart>> parts_in(const base::Json& document,
                                               std::span<const FileRecord> files,
                                               const std::string& where);
// Fails if something of a tensor is in no piece.
base::Result<void> check_complete(std::span<const StoredPart> parts, const std::string& where);

base::Error bad_manifest(const std::string& where, std::string what);

}  // namespace assay::checkpoint
