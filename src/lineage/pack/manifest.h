// The manifest of a pack: the runs that make an artifact, the contents that they need, and what was
// left out. Its JSON is `manifest.json`, the first member of the tar file; contents follow as
// `contents/BLAKE3`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "hash/digest.h"
#include "store/run.h"

namespace assay::lineage {

struct PackedContent {
  std::int64_t size = 0;
  bool executable = false;
};

struct LeftOutFile {
  std::string path;
  std::string why;
};

struct PackManifest {
  std::string project;        // the original project's folder
  std::string artifact_path;  // empty: the last run as a whole
  std::optional<hash::Digest> artifact;
  // In the order in which they ran, with lists and context, but without processes, user and host.
  // Git::diff holds the hexadecimal digest of the diff, which is one of the contents.
  std::vector<store::RunRecord> runs;
  std::map<hash::Digest, PackedContent> contents;
  std::vector<LeftOutFile> left_out;
};

// Whether a file at this path must not be in a pack: it is inside `.git` or one of Assay's own
// folders, where writing a file can run code or damage a store. Components of the project's own
// path do not count.
bool is_reserved(const std::string& path, const std::string& project);

// An error if a path or argument is not UTF-8, which JSON requires.
base::Result<std::string> manifest_text(const PackManifest& manifest);

// Validates everything: paths are absolute and have no "..", contents that runs need are listed or
// left out. Errors name `where`.
base::Result<PackManifest> parse_manifest(const std::string& text, const std::string& where);

}  // namespace assay::lineage
