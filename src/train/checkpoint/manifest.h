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

// kPiecesFormatVersion: written by several ranks together; the manifest then also says where the
// pieces of each tensor are. kFormatVersion: written by one rank.
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
  std::string layout;  // layout_text() of snapshot.h
  base::Json extra = base::Json::object();
  bool operator==(const TrainingState&) const = default;
};

// By the manifest's keys, in their order.
base::Json state_json(const TrainingState& state);

// A range of a tensor's elements, and the file that holds it (under the name that entry_of() of
// tensor.h gives it).
struct Piece {
  std::string file;
  ElementRange elements;
  bool operator==(const Piece&) const = default;
};

struct StoredTensor {
  TensorInfo info;
  std::vector<Piece> pieces;  // in element order; together they cover the whole tensor
  bool operator==(const StoredTensor&) const = default;
};

struct StoredPart {
  std::string name;  // "weights"
  std::vector<StoredTensor> tensors;
  bool operator==(const StoredPart&) const = default;
};

struct Manifest {
  TrainingState state;
  // The manifest file's modification time, or the value stored in the file by earlier versions. Not
  // written any more, so that the same state gives the same bytes.
  std::int64_t written_unix_ns = 0;
  std::vector<FileRecord> files;
  // If several ranks wrote the checkpoint; otherwise 1 and empty, and files hold whole tensors.
  std::int64_t ranks = 1;
  std::vector<StoredPart> parts = {};

  // Sum over all files, without the manifest.
  [[nodiscard]] std::int64_t bytes() const;
};

std::string manifest_text(const Manifest& manifest);
// Errors name `where`. Refuses file names with path separators, and pieces that overlap, do not
// cover their tensor, or lie in a file that is not listed.
base::Result<Manifest> parse_manifest(const std::string& text, const std::string& where);

}  // namespace assay::checkpoint
