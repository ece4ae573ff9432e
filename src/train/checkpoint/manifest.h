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
#include "train/checkpoint/tensor.h"

namespace assay::checkpoint {

// Of a checkpoint that one rank wrote, and of one that several ranks wrote together, whose manifest
// also says where the pieces of each tensor are.
inline constexpr int kFormatVersion = 1;
inline constexpr int kPiecesFormatVersion = 2;
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

// A range of a tensor's elements, and the file that has it (as entry_of() of tensor.h).
struct Piece {
  std::string file;
  ElementRange elements;
  bool operator==(const Piece&) const = default;
};

struct StoredTensor {
  TensorInfo info;
  std::vector<Piece> pieces;  // in the order of their elements; together all of them
  bool operator==(const StoredTensor&) const = default;
};

struct StoredPart {
  std::string name;  // "weights"
  std::vector<StoredTensor> tensors;
  bool operator==(const StoredPart&) const = default;
};

struct Manifest {
  TrainingState state;
  // The file's time, or what earlier versions have in the file. Not written to it: the same state
  // gives the same bytes.
  std::int64_t written_unix_ns = 0;
  std::vector<FileRecord> files;
  // Of a checkpoint that several ranks wrote; otherwise 1 and none: files have whole tensors then.
  std::int64_t ranks = 1;
  std::vector<StoredPart> parts = {};

  // Sum over all files, without the manifest.
  [[nodiscard]] std::int64_t bytes() const;
};

std::string manifest_text(const Manifest& manifest);
// Errors name `where`. File names with path separators are refused, and so are pieces that overlap,
// leave something of a tensor out, or lie in a file that is not listed.
base::Result<Manifest> parse_manifest(const std::string& text, const std::string& where);

}  // namespace assay::checkpoint
