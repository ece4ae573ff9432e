// The manifest of a checkpoint (manifest.json): the training state, and the length and BLAKE3 of
// every file. It is written last, so a folder that has one has all files it names.
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

// What training needs besides its tensors to continue as if it had never stopped. The JSON objects
// belong to the components that write them (data reader, schedule, …) and are stored unchanged.
struct TrainingState {
  std::int64_t step = 0;    // completed
  std::int64_t tokens = 0;  // consumed by these steps
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

  // Sum over all files, without the manifest.
  [[nodiscard]] std::int64_t bytes() const;
};

std::string manifest_text(const Manifest& manifest);
// Errors name `where`. File names with path separators are refused.
base::Result<Manifest> parse_manifest(const std::string& text, const std::string& where);

}  // namespace assay::checkpoint
