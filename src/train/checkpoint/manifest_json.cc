#include "train/checkpoint/manifest_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "hash/blake3.h"

namespace assay::checkpoint {
namespace {

using base::Json;

constexpr int kMostDepth = 100;
constexpr std::size_t kMostExtents = 64;
constexpr const char* kOwnDigest = "manifest_blake3";

// Serialising a document recurses, so its depth is bounded before it is parsed.
bool is_too_deep(const std::string& text) {
  int depth = 0;
  int deepest = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') ++i;
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '[' || c == '{') deepest = std::max(deepest, ++depth);
    if (c == ']' || c == '}') --depth;
  }
  return deepest > kMostDepth;
}

std::string digest_of(const Json& document) {
  const std::string text = base::json_text(document);
  return hash::blake3(std::as_bytes(std::span(text))).hex();
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name != kManifestName &&
         name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
}

std::optional<FileRecord> file_of(const Json& entry) {
  if (!entry.is_object()) return std::nullopt;
  const auto name = text_in(entry, "name");
  const auto bytes = count_in(entry, "bytes");
  const auto digest = hash::parse_digest(text_in(entry, "blake3").value_or(""));
  if (!name || !is_plain_name(*name) || !bytes || !digest) return std::nullopt;
  return FileRecord{*name, *bytes, *digest};
}

std::optional<TensorInfo> info_of(const Json& entry) {
  if (!entry.is_object()) return std::nullopt;
  const auto name = text_in(entry, "name");
  const auto dtype = dtype_named(text_in(entry, "dtype").value_or(""));
  const auto shape = entry.find("shape");
  if (!name || !dtype || shape == entry.end() || !shape->is_array()) return std::nullopt;
  if (shape->size() > kMostExtents) return std::nullopt;
  TensorInfo info{*name, *dtype, {}};
  for (const Json& extent : *shape) {
    if (!extent.is_number_unsigned()) return std::nullopt;
    if (extent.get<std::uint64_t>() > std::uint64_t{INT64_MAX}) return std::nullopt;
    info.shape.push_back(extent.get<std::int64_t>());
  }
  if (!info.bytes()) return std::nullopt;
  return info;
}

using FileNames = std::set<std::string_view>;

std::optional<StoredTensor> tensor_of(const Json& entry, const FileNames& files) {
  auto info = info_of(entry);
  if (!info) return std::nullopt;
  const auto pieces = entry.find("pieces");
  if (pieces == entry.end() || !pieces->is_array()) return std::nullopt;
  StoredTensor tensor{*std::move(info), {}};
  std::int64_t at = 0;
  for (const Json& piece : *pieces) {
    if (!piece.is_object()) return std::nullopt;
    const auto file = text_in(piece, "file");
    const auto first = count_in(piece, "first");
    const auto count = count_in(piece, "count");
    if (!file || !files.contains(*file) || !first || !count) return std::nullopt;
    ElementRange range{*first, *count};
    if (piece.contains("run")) {
      const auto run = count_in(piece, "run");
      if (!run || *run == 0 || tensor.info.shape.size() != 2) return std::nullopt;
      range.run = *run;
      range.apart = tensor.info.shape[1];
    }
    if (range.first < at || !is_piece_of(tensor.info, range)) return std::nullopt;
    at = range.in_runs() ? range.first : range.end();
    tensor.pieces.push_back({*file, range});
  }
  return tensor;
}

// The columns [first, end) of some rows.
struct Rectangle {
  std::int64_t first_row = 0;
  std::int64_t end_row = 0;
  std::int64_t first = 0;
  std::int64_t end = 0;
};

// A range without runs may begin and end within rows.
void add_rectangles(const ElementRange& e, std::int64_t cols, std::vector<Rectangle>& list) {
  const std::int64_t row = e.first / cols;
  if (e.in_runs()) {
    const std::int64_t first = e.first % cols;
    return list.push_back({row, row + e.count / e.run, first, first + e.run});
  }
  const std::int64_t whole_from = (e.first + cols - 1) / cols;
  const std::int64_t whole_to = e.end() / cols;
  if (whole_from > whole_to) return list.push_back({row, row + 1, e.first % cols, e.end() % cols});
  if (e.first % cols > 0) list.push_back({row, row + 1, e.first % cols, cols});
  if (whole_from < whole_to) list.push_back({whole_from, whole_to, 0, cols});
  if (e.end() % cols > 0) list.push_back({whole_to, whole_to + 1, 0, e.end() % cols});
}

// For a matrix: goes down its rows, keeping track of the rectangles that cover each.
std::int64_t first_missing_of_rows(const StoredTensor& tensor) {
  const std::int64_t rows = tensor.info.shape[0];
  const std::int64_t cols = tensor.info.shape[1];
  std::vector<Rectangle> list;
  for (const Piece& piece : tensor.pieces) add_rectangles(piece.elements, cols, list);
  std::ranges::sort(list, {}, &Rectangle::first_row);
  std::map<std::int64_t, Rectangle> crossed;  // by first column
  auto next = list.begin();
  for (std::int64_t row = 0; row < rows;) {
    std::erase_if(crossed, [&](const auto& entry) { return entry.second.end_row <= row; });
    for (; next != list.end() && next->first_row == row; ++next) {
      if (!crossed.emplace(next->first, *next).second) return row * cols + next->first;
    }
    std::int64_t column = 0;
    std::int64_t until = next == list.end() ? rows : next->first_row;
    for (const auto& [first, rectangle] : crossed) {
      if (first != column) return row * cols + std::min(first, column);
      column = rectangle.end;
      until = std::min(until, rectangle.end_row);
    }
    if (column != cols) return row * cols + column;
    row = until;
  }
  return rows * cols;
}

// The first element that no piece covers, or that two do; the number of elements if there is none.
std::int64_t first_missing(const StoredTensor& tensor) {
  if (std::ranges::any_of(tensor.pieces, [](const Piece& p) { return p.elements.in_runs(); })) {
    return first_missing_of_rows(tensor);
  }
  std::int64_t at = 0;
  for (const Piece& piece : tensor.pieces) {
    if (piece.elements.first != at) break;
    at = piece.elements.end();
  }
  return at;
}

std::optional<StoredPart> part_of(const Json& entry, const FileNames& files) {
  if (!entry.is_object()) return std::nullopt;
  const auto name = text_in(entry, "name");
  const auto tensors = entry.find("tensors");
  if (!name || tensors == entry.end() || !tensors->is_array()) return std::nullopt;
  StoredPart part{*name, {}};
  std::set<std::string> names;
  for (const Json& each : *tensors) {
    auto tensor = tensor_of(each, files);
    if (!tensor || !names.insert(tensor->info.name).second) return std::nullopt;
    part.tensors.push_back(*std::move(tensor));
  }
  return part;
}

}  // namespace

base::Error bad_manifest(const std::string& where, std::string what) {
  return base::failed_error(where, std::move(what), "the checkpoint is damaged; use another");
}

std::string sealed_text(Json document) {
  document[kOwnDigest] = digest_of(document);
  return base::json_text(document);
}

base::Result<Json> unsealed(const std::string& text, const std::string& where) {
  if (is_too_deep(text)) return base::fail(bad_manifest(where, "is nested too deeply"));
  Json document = Json::parse(text, nullptr, false);
  if (!document.is_object()) return base::fail(bad_manifest(where, "is not valid JSON"));
  const auto version = count_in(document, "format_version");
  if (!version) return base::fail(bad_manifest(where, "has no format_version"));
  if (*version != kFormatVersion && *version != kPiecesFormatVersion) {
    return base::fail(
        base::unfit_error(where,
                          fmt::format("has format {}, but this program reads {} and {}", *version,
                                      kFormatVersion, kPiecesFormatVersion),
                          "use the version of Assay that wrote it"));
  }
  const auto digest = text_in(document, kOwnDigest);
  document.erase(kOwnDigest);
  if (digest != digest_of(document)) {
    return base::fail(bad_manifest(where, "was changed after it was written"));
  }
  return document;
}

std::optional<std::int64_t> count_in(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return std::nullopt;
  if (found->is_number_unsigned() && found->get<std::uint64_t>() > std::uint64_t{INT64_MAX}) {
    return std::nullopt;
  }
  const auto value = found->get<std::int64_t>();
  return value >= 0 ? std::optional(value) : std::nullopt;
}

std::optional<std::string> text_in(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

Json files_json(std::span<const FileRecord> files) {
  Json list = Json::array();
  for (const FileRecord& file : files) {
    list.push_back({{"name", file.name}, {"bytes", file.bytes}, {"blake3", file.blake3.hex()}});
  }
  return list;
}

base::Result<std::vector<FileRecord>> files_in(const Json& document, const std::string& where) {
  const auto list = document.find("files");
  if (list == document.end() || !list->is_array()) {
    return base::fail(bad_manifest(where, "has no list of files"));
  }
  std::vector<FileRecord> files;
  std::set<std::string> names;
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < list->size(); ++i) {
    auto file = file_of((*list)[i]);
    if (!file || !names.insert(file->name).second) {
      return base::fail(bad_manifest(where, fmt::format("entry {} of its files is not valid", i)));
    }
    // Sums over the files must not overflow.
    if (__builtin_add_overflow(sum, file->bytes, &sum)) {
      return base::fail(bad_manifest(where, "lists files of an impossible size"));
    }
    files.push_back(*std::move(file));
  }
  return files;
}

Json parts_json(std::span<const StoredPart> parts) {
  Json list = Json::array();
  for (const StoredPart& part : parts) {
    Json tensors = Json::array();
    for (const StoredTensor& tensor : part.tensors) {
      Json pieces = Json::array();
      for (const Piece& piece : tensor.pieces) {
        Json entry = {
            {"file", piece.file}, {"first", piece.elements.first}, {"count", piece.elements.count}};
        if (piece.elements.in_runs()) entry["run"] = piece.elements.run;
        pieces.push_back(std::move(entry));
      }
      tensors.push_back({{"name", tensor.info.name},
                         {"dtype", dtype_name(tensor.info.dtype)},
                         {"shape", Json(tensor.info.shape)},
                         {"pieces", std::move(pieces)}});
    }
    list.push_back({{"name", part.name}, {"tensors", std::move(tensors)}});
  }
  return list;
}

base::Result<std::vector<StoredPart>> parts_in(const Json& document,
                                               std::span<const FileRecord> files,
                                               const std::string& where) {
  const auto list = document.find("parts");
  if (list == document.end() || !list->is_array()) {
    return base::fail(bad_manifest(where, "has no list of parts"));
  }
  FileNames known;
  for (const FileRecord& file : files) known.insert(file.name);
  std::vector<StoredPart> parts;
  std::set<std::string> names;
  for (const Json& entry : *list) {
    auto part = part_of(entry, known);
    if (!part || !names.insert(part->name).second) {
      return base::fail(
          bad_manifest(where, fmt::format("entry {} of its parts is not valid", parts.size())));
    }
    parts.push_back(*std::move(part));
  }
  return parts;
}

base::Result<void> check_complete(std::span<const StoredPart> parts, const std::string& where) {
  for (const StoredPart& part : parts) {
    for (const StoredTensor& tensor : part.tensors) {
      const std::int64_t at = first_missing(tensor);
      if (at == tensor.info.elements()) continue;
      return base::fail(bad_manifest(
          where, fmt::format("tensor '{}' of '{}' has no file for its elements from {} on",
                             tensor.info.name, part.name, at)));
    }
  }
  return {};
}

}  // namespace assay::checkpoint
