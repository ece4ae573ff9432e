#include "train/checkpoint/manifest.h"

#include <fmt/format.h>

#include <utility>

#include "train/checkpoint/manifest_json.h"

namespace assay::checkpoint {
namespace {

using base::Json;

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

Json state_json(const TrainingState& state) {
  return {{"step", state.step},
          {"tokens", state.tokens},
          {"seed", state.seed},
          {"data_cursor", state.data_cursor},
          {"random_state", state.random_state},
          {"schedule", state.schedule},
          {"layout", state.layout},
          {"extra", state.extra}};
}

std::string manifest_text(const Manifest& manifest) {
  const bool in_pieces = !manifest.parts.empty();
  Json document = Json{{"format_version", in_pieces ? kPiecesFormatVersion : kFormatVersion}};
  document.update(state_json(manifest.state));
  document["files"] = files_json(manifest.files);
  if (in_pieces) {
    document["ranks"] = manifest.ranks;
    document["parts"] = parts_json(manifest.parts);
  }
  return sealed_text(std::move(document));
}

base::Result<Manifest> parse_manifest(const std::string& text, const std::string& where) {
  ASSAY_TRY(const Json document, unsealed(text, where));
  Manifest manifest;
  ASSAY_TRY_VOID(read_state(document, manifest.state, where));
  ASSAY_TRY(manifest.files, files_in(document, where));
  // In manifests of earlier versions.
  manifest.written_unix_ns = count_in(document, "written_unix_ns").value_or(0);
  if (count_in(document, "format_version") == kFormatVersion) return manifest;
  const auto ranks = count_in(document, "ranks");
  if (!ranks || *ranks == 0) return base::fail(bad_manifest(where, "has no number of ranks"));
  manifest.ranks = *ranks;
  ASSAY_TRY(manifest.parts, parts_in(document, manifest.files, where));
  if (manifest.parts.empty()) return base::fail(bad_manifest(where, "has no parts"));
  ASSAY_TRY_VOID(check_complete(manifest.parts, where));
  return manifest;
}

}  // namespace assay::checkpoint
