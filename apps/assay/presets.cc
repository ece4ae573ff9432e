// assay presets [list|show|check|keys]: the models, devices, clusters, layouts, prices and jobs
// that the program knows, and whether a file of yours is one.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "base/table.h"
#include "base/text.h"
#include "print_spec.h"
#include "spec/load.h"
#include "spec/presets.h"
#include "spec/schema.h"
#include "verb.h"

namespace assay::cli {
namespace {

using base::ExitCode;
using base::Result;

Result<ExitCode> list(const Session& session, const std::string& wanted) {
  constexpr std::array kKinds = {spec::Kind::kModel,  spec::Kind::kJob,    spec::Kind::kCluster,
                                 spec::Kind::kDevice, spec::Kind::kLayout, spec::Kind::kPrices};
  std::vector<std::string> names;
  for (const spec::Kind kind : kKinds) names.push_back(kind_plural(kind));
  if (!wanted.empty() && std::find(names.begin(), names.end(), wanted) == names.end()) {
    return base::fail(base::usage_error("presets list", fmt::format("unknown kind '{}'", wanted),
                                        base::suggestion(wanted, names)));
  }

  base::Json document = base::Json::object();
  for (const spec::Kind kind : kKinds) {
    const std::string name = kind_plural(kind);
    if (!wanted.empty() && wanted != name) continue;
    std::vector<spec::Loaded> all;
    for (const std::string& preset : spec::preset_names(kind)) {
      ASSAY_TRY(spec::Loaded loaded, spec::load(preset));
      all.push_back(std::move(loaded));
    }
    document[name] = list_json(all);
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
  session.next("assay presets keys, for everything that --set can change");
  return ExitCode::kYes;
}

Result<ExitCode> check(const Session& session, const std::string& file,
                       const std::vector<std::string>& overrides) {
  ASSAY_TRY(const spec::Loaded loaded, spec::load(file, {.overrides = overrides}));
  session.print_json(base::Json{{"ok", true},
                                {"kind", spec::to_text(loaded.kind())},
                                {"name", loaded.name},
                                {"summary", summary(loaded)}});
  session.print(
      fmt::format("{}: a valid {}: {}\n", file, spec::to_text(loaded.kind()), summary(loaded)));
  session.next("assay presets show " + file);
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
    std::vector<std::string> sections;
    for (const spec::KeyDoc& key : spec::all_keys()) sections.push_back(key.path);
    return base::fail(base::usage_error("presets keys", fmt::format("no key '{}'", section),
                                        base::suggestion(section, sections)));
  }
  session.print_json(base::Json{{"keys", list}});
  session.print(table);
  return ExitCode::kYes;
}

}  // namespace

void add_presets(CLI::App& app, Session& session) {
  struct Arguments {
    std::string kind, reference, file, section;
    std::vector<std::string> overrides;
  };
  const auto arguments = std::make_shared<Arguments>();
  const auto add_overrides = [arguments](CLI::App* verb) {
    verb->add_option("--set", arguments->overrides, "KEY=VALUE written over the spec; repeatable")
        ->take_all()
        ->allow_extra_args(false);
  };

  CLI::App* presets = add_verb(app, session, "presets", "models, clusters, prices and jobs by name",
                               "  assay presets\n"
                               "  assay presets show llama3-8b\n"
                               "  assay presets show demo --set model.layers=8");
  presets->require_subcommand(0, 1);

  CLI::App* list_verb = add_verb(*presets, session, "list", "every preset, as tables",
                                 "  assay presets list\n"
                                 "  assay presets list clusters --json");
  list_verb->add_option("KIND", arguments->kind,
                        "models, jobs, clusters, devices, layouts or prices; default: all");

  CLI::App* show_verb = add_verb(*presets, session, "show", "one preset or file, fully resolved",
                                 "  assay presets show llama3-8b\n"
                                 "  assay presets show moe-9b --set model.experts=16 --json\n"
                                 "  assay presets show this-machine");
  show_verb->add_option("NAME", arguments->reference, "a preset, a file, or - for standard input")
      ->required();
  add_overrides(show_verb);

  CLI::App* check_verb = add_verb(*presets, session, "check", "is this file a valid spec?",
                                  "  assay presets check job.toml\n"
                                  "  assay presets check job.toml --set layout.tp=4");
  check_verb->add_option("FILE", arguments->file, "a spec file, or - for standard input")
      ->required();
  add_overrides(check_verb);

  CLI::App* keys_verb = add_verb(*presets, session, "keys", "every key a spec can have",
                                 "  assay presets keys\n"
                                 "  assay presets keys layout");
  keys_verb->add_option("SECTION", arguments->section, "only keys that start with this");

  presets->callback([presets, &session, arguments] {
    if (presets->get_subcommands().empty()) {
      session.set_action([&session] { return list(session, ""); });
    }
  });
  list_verb->callback([&session, arguments] {
    session.set_action([&session, arguments] { return list(session, arguments->kind); });
  });
  show_verb->callback([&session, arguments] {
    session.set_action([&session, arguments] {
      return show(session, arguments->reference, arguments->overrides);
    });
  });
  check_verb->callback([&session, arguments] {
    session.set_action(
        [&session, arguments] { return check(session, arguments->file, arguments->overrides); });
  });
  keys_verb->callback([&session, arguments] {
    session.set_action([&session, arguments] { return keys(session, arguments->section); });
  });
}

}  // namespace assay::cli
