#include "train/checkpoint/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "hash/blake3.h"

namespace assay::checkpoint {
namespace {

using base::Json;

constexpr int kMostDepth = 100;

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

// The last key: the hash of the document without it, so that changes to the manifest are noticed.
constexpr const char* kOwnDigest = "manifest_blake3";

std::string digest_of(const Json& document) {
  const std::string text = base::json_text(document);
  return hash::blake3(std::as_bytes(std::span(text))).hex();
}

base::Error bad_manifest(const std::string& where, std::string what) {
  return base::failed_error(where, std::move(what), "the checkpoint is damaged; use another");
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

base::Result<void> read_files(const Json& document, Manifest& manifest, const std::string& where) {
  const auto list = document.find("files");
  if (list == document.end() || !list->is_array()) {
    return base::fail(bad_manifest(where, "has no list of files"));
  }
  std::set<std::string> names;
  for (std::size_t i = 0; i < list->size(); ++i) {
    auto file = file_of((*list)[i]);
    if (!file || !names.insert(file->name).second) {
      return base::fail(bad_manifest(where, fmt::format("entry {} of its files is not valid", i)));
    }
    manifest.files.push_back(*std::move(file));
  }
  return {};
}

base::Result<void> read_state(const Json& document, TrainingState& state,
                              const std::string& where) {
  const auto step = count_in(document, "step");
  const auto tokens = count_in(document, "tokens");
  const auto layout = text_in(document, "layout");
  const auto seed = document.find("seed");
  if (!step || !tokens || !layout || seed == document.end() || !seed->is_number_unsigned()) {
    return base::fail(bad_manifest(where, "has no valid step, tokens, seed or layout"));
  }
  state.step = *step;
  state.tokens = *tokens;
  state.layout = *layout;
  state.seed = seed->get<std::uint64_t>();
  for (const auto& [key, target] :
       {std::pair("data_cursor", &state.data_cursor),
        std::pair("random_state", &state.random_state), std::pair("schedule", &state.schedule),
        std::pair("extra", &state.extra)}) {
    const auto found = document.find(key);
    if (found == document.end())
      return base::fail(bad_manifest(where, fmt::format("has no {}", key)));
    *target = *found;
  }
  return {};
}

}  // namespace

std::int64_t Manifest::bytes() const {
  std::int64_t sum = 0;
  for (const FileRecord& file : files) sum += file.bytes;
  return sum;
}

std::string manifest_text(const Manifest& manifest) {
  const TrainingState& state = manifest.state;
  Json files = Json::array();
  for (const FileRecord& file : manifest.files) {
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"blake3", file.blake3.hex()}});
  }
  Json document = Json{{"format_version", kFormatVersion},
                       {"step", state.step},
                       {"tokens", state.tokens},
                       {"seed", state.seed},
                       {"written_unix_ns", manifest.written_unix_ns},
                       {"data_cursor", state.data_cursor},
                       {"random_state", state.random_state},
                       {"schedule", state.schedule},
                       {"layout", state.layout},
                       {"extra", state.extra},
                       {"files", std::move(files)}};
  document[kOwnDigest] = digest_of(document);
  return base::json_text(document);
}

base::Result<Manifest> parse_manifest(const std::string& text, const std::string& where) {
  if (is_too_deep(text)) return base::fail(bad_manifest(where, "is nested too deeply"));
  Json document = Json::parse(text, nullptr, false);
  if (!document.is_object()) return base::fail(bad_manifest(where, "is not valid JSON"));
  const auto version = count_in(document, "format_version");
  if (!version) return base::fail(bad_manifest(where, "has no format_version"));
  if (*version != kFormatVersion) {
    return base::fail(base::unfit_error(
        where, fmt::format("has format {}, but this program reads {}", *version, kFormatVersion),
        "use the version of Assay that wrote it"));
  }
  const auto digest = text_in(document, kOwnDigest);
  document.erase(kOwnDigest);
  if (digest != digest_of(document)) {
    return base::fail(bad_manifest(where, "was changed after it was written"));
  }
  Manifest manifest;
  ASSAY_TRY_VOID(read_state(document, manifest.state, where));
  ASSAY_TRY_VOID(read_files(document, manifest, where));
  manifest.written_unix_ns = count_in(document, "written_unix_ns").value_or(0);
  // Sums over the files must not overflow.
  std::int64_t sum = 0;
  for (const FileRecord& file : manifest.files) {
    if (__builtin_add_overflow(sum, file.bytes, &sum)) {
      return base::fail(bad_manifest(where, "lists an impossible number of bytes"));
    }
  }
  return manifest;
}

}  // namespace assay::checkpoint
