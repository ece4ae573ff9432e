#include "spec/compose.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/suggestion.h"
#include "base/text.h"
#include "spec/overrides.h"
#include "spec/presets.h"
#include "spec/toml.h"

namespace assay::spec {
namespace {

namespace fs = std::filesystem;

constexpr base::Bytes kMaxFile(1 << 20);
constexpr std::size_t kMaxDepth = 16;
// A file can extend in six places, and each of those files again: a depth limit alone would allow
// 6^16.
constexpr int kMaxDocuments = 64;

// Sections that may extend, and the section of the other document that they start from. Inner
// sections come after the outer ones that may introduce them.
struct Extendable {
  std::string_view path;
  std::string_view from;
};
constexpr std::array<Extendable, 5> kExtendable = {{{"model", "model"},
                                                    {"layout", "layout"},
                                                    {"cluster", "cluster"},
                                                    {"cluster.device", "device"},
                                                    {"device", "device"}}};

bool is_path(std::string_view reference) {
  return reference == "-" || reference.find('/') != std::string_view::npos ||
         reference.ends_with(".toml");
}

Value* find_mutable(Value& root, std::string_view path) {
  return const_cast<Value*>(std::as_const(root).at(path));
}

// Writes `above` over `below`: tables merge key by key, everything else is replaced, and a table
// with `extends` starts afresh.
Value overlay(Value below, Value above) {
  auto* over = above.get<Value::Table>();
  auto* under = below.get<Value::Table>();
  if (over == nullptr || under == nullptr || over->contains("extends")) return above;
  for (auto& [key, value] : *under) {
    const auto found = over->find(key);
    if (found == over->end()) {
      over->emplace(key, std::move(value));
    } else {
      found->second = overlay(std::move(value), std::move(found->second));
    }
  }
  return above;
}

class Composer {
 public:
  explicit Composer(const ComposeOptions& options) : options_(options) {}

  // Parses the document that `reference` names. `asked` is the value that names it, for errors and
  // as the base of relative paths; null on the command line.
  base::Result<Composed> open(const std::string& reference, const Value* asked) {
    if (++documents_ > kMaxDocuments) {
      return base::fail(base::usage_error(
          asked->origin().text(),
          fmt::format("extends: more than {} documents are included", kMaxDocuments),
          "extend fewer, or write some of them out"));
    }
    if (!is_path(reference)) return open_preset(reference, asked);
    const fs::path path = resolve(reference, asked);
    auto text = base::read_file(path, kMaxFile,
                                asked == nullptr ? base::Pipes::kRead : base::Pipes::kRefuse);
    if (!text) {
      base::Error error = text.error();
      error.code = base::ExitCode::kUsage;
      if (asked != nullptr) error.where = asked->origin().text() + ": extends: " + error.where;
      return base::fail(std::move(error));
    }
    ASSAY_TRY(Value document, parse_toml(*text, path == "-" ? "standard input" : path.string()));
    return Composed{path == "-" ? "standard input" : path.stem().string(), std::move(document)};
  }

  // The document with everything that it and its sections extend merged below it.
  base::Result<Value> expand(Value document) {
    ASSAY_TRY(document, expand_whole(std::move(document)));
    for (const Extendable& section : kExtendable) {
      ASSAY_TRY(document, expand_section(std::move(document), section));
    }
    return document;
  }

 private:
  static fs::path resolve(const fs::path& path, const Value* asked) {
    // Only a regular file has a directory; paths in a pipe's content are relative to the working
    // directory.
    std::error_code ignored;
    if (asked == nullptr || path.is_absolute()) return path;
    if (!fs::is_regular_file(asked->origin().source, ignored)) return path;
    return fs::path(asked->origin().source).parent_path() / path;
  }

  // The same text for the same file, however it was spelled.
  static std::string identity(const std::string& reference, const Value& asked) {
    if (!is_path(reference)) return reference;
    std::error_code ignored;
    return fs::weakly_canonical(resolve(reference, &asked), ignored).string();
  }

  base::Result<Composed> open_preset(const std::string& name, const Value* asked) {
    const Preset* preset = find_preset(name);
    if (preset == nullptr) {
      const std::string where = asked == nullptr ? "" : asked->origin().text() + ": extends";
      return base::fail(
          base::usage_error(where, fmt::format("no preset '{}'", name), other_than(name, asked)));
    }
    if (preset->name == kThisMachine) return Composed{name, options_.this_machine()};
    ASSAY_TRY(Value document, parse_toml(preset->contents, preset->source));
    return Composed{name, std::move(document)};
  }

  // What a name that is not a preset was probably meant to be.
  static std::string other_than(const std::string& name, const Value* asked) {
    std::error_code ignored;
    const fs::file_status status = fs::status(resolve(name, asked), ignored);
    if (fs::exists(status) && !fs::is_directory(status)) {
      return fmt::format("there is a file of that name: write ./{}", name);
    }
    const std::string near = base::suggestion(name, preset_names());
    return near.empty() ? "`assay presets list` shows them; a file needs a / or .toml" : near;
  }

  // Opens and expands what `asked`, the value of an `extends`, names.
  base::Result<Value> parent(const Value& asked) {
    const auto* reference = asked.get<std::string>();
    if (reference == nullptr) {
      return base::fail(base::usage_error(
          asked.origin().text(),
          fmt::format("extends: expected the name of a preset or a file, got {}", asked.shown())));
    }
    if (*reference == "-") {
      return base::fail(base::usage_error(asked.origin().text(),
                                          "extends: standard input cannot be extended",
                                          "name a preset or a file"));
    }
    std::string id = identity(*reference, asked);
    if (std::find(chain_.begin(), chain_.end(), id) != chain_.end() || chain_.size() >= kMaxDepth) {
      return base::fail(circle(asked));
    }
    chain_.push_back(std::move(id));
    ASSAY_TRY(Composed composed, open(*reference, &asked));
    auto expanded = expand(std::move(composed.document));
    chain_.pop_back();
    return expanded;
  }

  base::Error circle(const Value& asked) const {
    std::string path;
    for (const std::string& name : chain_) path += name + " -> ";
    return base::usage_error(asked.origin().text(),
                             fmt::format("extends: circular, or nested deeper than {} files: {}{}",
                                         kMaxDepth, path, *asked.get<std::string>()));
  }

  base::Result<Value> expand_whole(Value document) {
    auto* table = document.get<Value::Table>();
    const auto found = table->find("extends");
    if (found == table->end()) return document;
    const Value asked = std::move(found->second);
    table->erase(found);
    ASSAY_TRY(Value below, parent(asked));
    // The other document's description does not apply to this one.
    below.get<Value::Table>()->erase("description");
    return overlay(std::move(below), std::move(document));
  }

  base::Result<Value> expand_section(Value document, const Extendable& section) {
    Value* node = find_mutable(document, section.path);
    auto* table = node == nullptr ? nullptr : node->get<Value::Table>();
    if (table == nullptr || !table->contains("extends")) return document;
    const Value asked = std::move(table->at("extends"));
    table->erase("extends");
    ASSAY_TRY(const Value other, parent(asked));
    const Value* below = other.find(section.from);
    if (below == nullptr) {
      return base::fail(base::usage_error(asked.origin().text(),
                                          fmt::format("{}.extends: '{}' has no [{}]", section.path,
                                                      *asked.get<std::string>(), section.from)));
    }
    *node = overlay(*below, std::move(*node));
    return document;
  }

  const ComposeOptions& options_;
  std::vector<std::string> chain_;  // what is being expanded, outermost first
  int documents_ = 0;               // opened so far
};

}  // namespace

bool may_extend(std::string_view section) {
  const auto is_it = [&](const Extendable& one) { return one.path == section; };
  return section.empty() || std::any_of(kExtendable.begin(), kExtendable.end(), is_it);
}

base::Result<Composed> compose(std::string_view reference, const ComposeOptions& options) {
  Composer composer(options);
  ASSAY_TRY(Composed composed, composer.open(std::string(reference), nullptr));
  for (const std::string& text : options.overrides) {
    ASSAY_TRY_VOID(apply_override(composed.document, text));
  }
  ASSAY_TRY(composed.document, composer.expand(std::move(composed.document)));
  drop_replaced(composed.document);
  return composed;
}

}  // namespace assay::spec
