// The manifest of a checkpoint: where training stood, and the length and BLAKE3 of every file. It
// is written last, as manifest.json, so that a folder with one has everything that it names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "train/checkpoint/output_file.h"

namespace assay::checkpoint {

inline constexpr int kFormatVersion = 1;
inline constexpr std::string_view kManifestName = "manifest.json";

// What training needs besides its tensors to go on as if it had never stopped. The objects belong
// to those who write them (the reader of data, the schedule, …) and are kept as they are.
struct TrainingState {
  std::int64_t step = 0;    // steps that are done
  std::int64_t tokens = 0;  // tokens they were made of
  std::uint64_t seed = 0;
  base::Json data_cursor = base::Json::object();
  base::Json random_state = base::Json::object();
  base::Json schedule = base::Json::object();
  std::string layout;  // of the parameters, as text
  base::Json extra = base::Json::object();
  bool operator==(const TrainingState&) const = default;
};

struct Manifest {
  TrainingState state;
  std::int64_t written_unix_ns = 0;
  std::vector<FileRecord> files;

  // Of all files, without the manifest.
  [[nodiscard]] std::int64_t bytes() const;
};

std::string manifest_text(const Manifest& manifest);
// Errors name `where`. Names of files that are no plain names are refused.
base::Result<Manifest> parse_manifest(const std::string& text, const std::string& where);

}  // namespace assay::checkpoint
