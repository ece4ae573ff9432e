#include "spec/presets.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace assay::spec {
namespace {

struct KindNames {
  Kind kind;
  std::string_view name;
  std::string_view plural;
  std::string_view section;
};

constexpr std::array<KindNames, 6> kKinds = {{
    {Kind::kModel, "model", "models", "model"},
    {Kind::kJob, "job", "jobs", ""},
    {Kind::kCluster, "cluster", "clusters", "cluster"},
    {Kind::kDevice, "device", "devices", "device"},
    {Kind::kLayout, "layout", "layouts", "layout"},
    {Kind::kPrices, "prices", "prices", "price"},
}};

const KindNames& names_of(Kind kind) {
  const auto found = std::find_if(kKinds.begin(), kKinds.end(),
                                  [&](const KindNames& names) { return names.kind == kind; });
  ASSAY_CHECK(found != kKinds.end(), "every kind has names");
  return *found;
}

Preset to_preset(const base::EmbeddedFile& file) {
  const std::size_t slash = file.path.find('/');
  const auto folder = std::find_if(kKinds.begin(), kKinds.end(), [&](const KindNames& names) {
    return names.plural == file.path.substr(0, slash);
  });
  ASSAY_CHECK(folder != kKinds.end(), "every folder of presets/ has a kind");
  std::string_view name = file.path.substr(slash + 1);
  name.remove_suffix(std::string_view(".toml").size());
  return {std::string(name), folder->kind, "presets/" + std::string(file.path), file.contents};
}

// Compares runs of digits as numbers, so that llama3-8b comes before llama3-13b.
bool natural_less(const std::string& a, const std::string& b) {
  return strverscmp(a.c_str(), b.c_str()) < 0;
}

std::vector<Preset> make_catalogue() {
  std::vector<Preset> all;
  for (const base::EmbeddedFile& file : embedded_files()) all.push_back(to_preset(file));
  all.push_back({std::string(kThisMachine), Kind::kCluster, "this machine", {}});
  std::sort(all.begin(), all.end(), [](const Preset& a, const Preset& b) {
    return a.kind != b.kind ? a.kind < b.kind : natural_less(a.name, b.name);
  });
  return all;
}

}  // namespace

std::string_view to_text(Kind kind) {
  return names_of(kind).name;
}

std::string_view kind_plural(Kind kind) {
  return names_of(kind).plural;
}

std::string_view kind_section(Kind kind) {
  return names_of(kind).section;
}

std::span<const Kind> all_kinds() {
  static constexpr auto kAll = [] {
    std::array<Kind, kKinds.size()> all{};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = kKinds[i].kind;
    return all;
  }();
  return kAll;
}

const std::vector<Preset>& presets() {
  static const std::vector<Preset> kCatalogue = make_catalogue();
  return kCatalogue;
}

const Preset* find_preset(std::string_view name) {
  const auto& all = presets();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Preset& preset) { return preset.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::vector<std::string> preset_names(Kind kind) {
  std::vector<std::string> names;
  for (const Preset& preset : presets()) {
    if (preset.kind == kind) names.push_back(preset.name);
  }
  return names;
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Preset& preset : presets()) names.push_back(preset.name);
  return names;
}

}  // namespace assay::spec
