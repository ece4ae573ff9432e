// assay presets [list|show|check|keys]: the models, devices, clusters, layouts, prices and jobs
// that the program knows, and whether a file of yours is one.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "assay/presets/print.h"
#include "assay/shared/spec_summary.h"
#include "assay/verbs.h"
#include "base/suggestion.h"
#include "base/table.h"
#include "base/text.h"
#include "spec/load.h"
#include "spec/presets.h"
#include "spec/schema.h"

namespace assay::cli {
namespace {

using base::ExitCode;
using base::Result;

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const spec::Kind kind : spec::all_kinds()) names.emplace_back(spec::kind_plural(kind));
  return names;
}

std::vector<std::string> section_names() {
  std::vector<std::string> names;
  for (const spec::KeyDoc& key : spec::all_keys()) {
    std::string section = key.path.substr(0, key.path.find('.'));
    if (names.empty() || names.back() != section) names.push_back(std::move(section));
  }
  return names;
}

Result<ExitCode> list(const Session& session, const std::string& wanted) {
  const std::vector<std::string> names = kind_names();
  if (!wanted.empty() && std::find(names.begin(), names.end(), wanted) == names.end()) {
    return base::fail(base::usage_error("presets list", fmt::format("unknown kind '{}'", wanted),
                                        base::suggestion(wanted, names)));
  }

  ASSAY_TRY(const spec::PriceList prices, spec::preset_prices());
  base::Json document = base::Json::object();
  for (const spec::Kind kind : spec::all_kinds()) {
    const std::string name(spec::kind_plural(kind));
    if (!wanted.empty() && wanted != name) continue;
    std::vector<spec::Loaded> all;
    for (const std::string& preset : spec::preset_names(kind)) {
      ASSAY_TRY(spec::Loaded loaded, spec::load(preset));
      all.push_back(std::move(loaded));
    }
    document[name] = session.json ? list_json(all, prices) : base::Json();
    session.print(document.size() > 1 ? "\n" + name + "\n" : name + "\n");
    session.print(list_table(kind, all));
  }
  session.print_json(document);
  session.next("assay presets show llama3-8b");
  return ExitCode::kYes;
}

Result<ExitCode> show(const Session& session, const std::string& reference,
                      const std::vector<std::string>& overrides) {
  ASSAY_TRY(const spec::Loaded loaded, spec::load(reference, {.overrides = overrides}));
  ASSAY_TRY(const spec::PriceList prices, spec::preset_prices());
  session.print_json(spec_json(loaded, prices));
  print_spec(session, loaded, prices);
  session.next("assay presets keys, for all keys that --set can change");
  return ExitCode::kYes;
}

// The command that shows what was checked; nothing when the source cannot be read again, or its
// name cannot be shown.
std::string show_command(const std::string& file, const std::vector<std::string>& overrides) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored) || base::printable(file) != file) return "";
  std::string command = "assay presets show " + base::shell_quoted(file);
  for (const std::string& text : overrides) command += " --set " + base::shell_quoted(text);
  return command;
}

Result<ExitCode> check(const Session& session, const std::string& file,
                       const std::vector<std::string>& overrides) {
  const auto loaded = spec::load(file, {.overrides = overrides});
  if (!loaded) {
    const base::Error& error = loaded.error();
    session.print_json(base::Json{
        {"ok", false},
        {"error", {{"where", error.where}, {"what", error.what}, {"hint", error.hint}}}});
    return base::fail(error);
  }
  const bool prices = loaded->kind() == spec::Kind::kPrices;
  session.print_json(base::Json{{"ok", true},
                                {"kind", spec::to_text(loaded->kind())},
                                {"name", loaded->name},
                                {"summary", summary(*loaded)}});
  session.print(fmt::format("{}: a valid {}: {}\n", base::printable(file),
                            prices ? "price list" : spec::to_text(loaded->kind()),
                            base::printable(summary(*loaded))));
  if (const std::string next = show_command(file, overrides); !next.empty()) session.next(next);
  return ExitCode::kYes;
}

Result<ExitCode> keys(const Session& session, const std::string& section) {
  base::Table table({"key", "expected", "default", "meaning"});
  base::Json list = base::Json::array();
  for (const spec::KeyDoc& key : spec::all_keys()) {
    if (!section.empty() && !(key.path + ".").starts_with(section + ".")) continue;
    table.row({key.path, key.expected, key.fallback, key.meaning});
    list.push_back({{"key", key.path},
                    {"expected", key.expected},
                    {"default", key.fallback},
                    {"meaning", key.meaning}});
  }
  if (table.empty()) {
    return base::fail(base::usage_error("presets keys", fmt::format("no key '{}'", section),
                                        base::suggestion(section, section_names())));
  }
  session.print_json(base::Json{{"keys", list}});
  session.print(table);
  session.next("assay presets show demo --set model.layers=8");
  return ExitCode::kYes;
}

}  // namespace

Verb presets_verb(const Session& session) {
  struct Arguments {
    std::string kind, reference, file, section;
    std::vector<std::string> overrides;
  };
  const auto given = std::make_shared<Arguments>();
  const Option set{"--set", "override a key of the spec", &given->overrides, spec::override_keys};

  Verb verb{"presets",
            "list, show and check models, clusters, prices and jobs",
            {"assay presets", "assay presets show llama3-8b",
             "assay presets show demo --set model.layers=8"}};
  verb.action = [&session] { return list(session, ""); };
  verb.verbs = {
      {.name = "list",
       .description = "list all presets",
       .examples = {"assay presets list", "assay presets list clusters --json"},
       .arguments = {{"KIND", fmt::format("{}; default: all", fmt::join(kind_names(), ", ")),
                      &given->kind, false, kind_names}},
       .action = [&session, given] { return list(session, given->kind); }},
      {.name = "show",
       .description = "show one preset or file, fully resolved",
       .examples = {"assay presets show llama3-8b",
                    "assay presets show moe-9b --set model.experts=16 --json",
                    "assay presets show this-machine"},
       .arguments = {{"NAME", "a preset, a file, or - for standard input", &given->reference, true,
                      [] { return spec::preset_names(); }, true}},
       .options = {set},
       .action = [&session, given] { return show(session, given->reference, given->overrides); }},
      {.name = "check",
       .description = "check that a file is a valid spec",
       .examples = {"assay presets check job.toml",
                    "assay presets check job.toml --set layout.tp=4"},
       .arguments =
           {{"FILE", "a spec file, or - for standard input", &given->file, true, {}, true}},
       .options = {set},
       .action = [&session, given] { return check(session, given->file, given->overrides); }},
      {.name = "keys",
       .description = "list all keys of a spec",
       .examples = {"assay presets keys", "assay presets keys layout"},
       .arguments = {{"SECTION", "only keys that start with this", &given->section, false,
                      section_names}},
       .action = [&session, given] { return keys(session, given->section); }},
  };
  return verb;
}

}  // namespace assay::cli
