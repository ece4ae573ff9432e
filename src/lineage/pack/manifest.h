// The manifest of a pack: the runs that make something, what they need by content, and what was
// left out. Its JSON is `manifest.json`, the first member; contents follow as `contents/BLAKE3`.
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
  std::string project;        // the folder of the original
  std::string artifact_path;  // empty: the last run as a whole
  std::optional<hash::Digest> artifact;
  // In the order in which they ran, with lists and context, but without processes, user and host.
  // Git::diff is the hexadecimal digest of the diff, which is a content.
  std::vector<store::RunRecord> runs;
  std::map<hash::Digest, PackedContent> contents;
  std::vector<LeftOutFile> left_out;
};

// Whether a file at this path must not be in a pack: inside `.git` or Assay's own folders, where
// files are more than data. Parts of the project's own path do not count.
bool is_reserved(const std::string& path, const std::string& project);

// An error if a path or argument is not UTF-8, which JSON cannot have.
base::Result<std::string> manifest_text(const PackManifest& manifest);

// Everything in it is checked: paths are absolute and have no "..", contents that runs need are
// listed or left out. Errors name `where`.
base::Result<PackManifest> parse_manifest(const std::string& text, const std::string& where);

}  // namespace assay::lineage
