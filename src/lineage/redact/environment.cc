// See environment.h: the environment. The words are in words.cc.
#include "lineage/redact/environment.h"

#include "lineage/redact/secret_name.h"

namespace assay::lineage {
namespace {

// LD_PRELOAD without our libraries; entries are separated by spaces or colons.
std::string without_our_library(std::string_view value) {
  std::string out;
  while (!value.empty()) {
    const std::size_t end = std::min(value.find_first_of(" :"), value.size());
    const std::string_view entry = value.substr(0, end);
    const std::string_view file = entry.substr(entry.rfind('/') + 1);
    if (!entry.empty() && !file.starts_with("libassay")) {
      if (!out.empty()) out += ':';
      out += entry;
    }
    value.remove_prefix(std::min(end + 1, value.size()));
  }
  return out;
}

}  // namespace

bool is_redacted(std::string_view text) {
  return text.find(kRedacted) != std::string_view::npos;
}

std::string redacted_value(std::string_view name, std::string_view value) {
  const NameSays says = what_name_says(name);
  const bool directory = name.ends_with("PWD") && value.starts_with('/');
  const bool secret = says == NameSays::kSecret
                          ? !value.empty()
                          : says == NameSays::kMaybe && !directory && !is_number_or_truth(value);
  if (secret) return std::string(kRedacted);
  // A value can be a text with named secrets inside ("host=x password=y"), like a word.
  return redacted_words(std::vector<std::string>{std::string(value)})[0];
}

std::map<std::string, std::string> redacted_environment(std::span<const std::string> entries) {
  std::map<std::string, std::string> kept;
  for (const std::string_view entry : entries) {
    const std::size_t equals = entry.find('=');
    if (equals == 0 || equals == std::string_view::npos) continue;
    const std::string_view name = entry.substr(0, equals);
    std::string_view value = entry.substr(equals + 1);
    if (name.starts_with("ASSAY_")) continue;
    std::string preload;
    if (name == "LD_PRELOAD") {
      preload = without_our_library(value);
      if (preload.empty()) continue;
      value = preload;
    }
    // The first of several wins, as in getenv().
    kept.try_emplace(std::string(name), redacted_value(name, value));
  }
  return kept;
}

}  // namespace assay::lineage
