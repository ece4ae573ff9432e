// A suite file: from TOML to a Suite in which every name is known.
#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "base/text.h"
#include "spec/table_keys.h"
#include "spec/toml.h"
#include "suite/read_figures.h"
#include "suite/suite.h"

namespace assay::suite {
namespace {

using spec::TableKeys;
using spec::Value;
using spec::wrong_value;

constexpr base::Seconds kUsualLimit(600);
constexpr std::int64_t kMostRepeats = 1000;
constexpr std::array<std::pair<const char*, StepKind>, 5> kStepKeys = {{
    {"plan", StepKind::kPlan},
    {"rows", StepKind::kRows},
    {"collective", StepKind::kCollective},
    {"compare", StepKind::kCompare},
    {"command", StepKind::kCommand},
}};
// Names become files, and words of a command line.
constexpr std::string_view kNameLetters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";

bool is_file_name(const std::string& name) {
  return !name.empty() && name.size() <= 60 && name.front() != '.' && name.front() != '-' &&
         name.find_first_not_of(kNameLetters) == std::string::npos;
}

base::Result<Settings> settings_of(const Value* value, const char* key) {
  Settings settings;
  if (value == nullptr) return settings;
  const auto* table = value->get<Value::Table>();
  if (table == nullptr) return base::fail(wrong_value(*value, key, "a table"));
  for (const auto& [name, setting] : *table) {
    if (const auto* text = setting.get<std::string>()) {
      settings[name] = *text;
    } else if (setting.get<std::int64_t>() != nullptr || setting.get<double>() != nullptr ||
               setting.get<bool>() != nullptr) {
      settings[name] = setting.shown();
    } else {
      return base::fail(wrong_value(setting, name, "a string or a number"));
    }
  }
  return settings;
}

base::Result<std::vector<std::string>> words_in(const Value* value, const char* key) {
  std::vector<std::string> words;
  if (value == nullptr) return words;
  if (const auto* one = value->get<std::string>()) return std::vector<std::string>{*one};
  const auto* list = value->get<Value::Array>();
  if (list == nullptr) return base::fail(wrong_value(*value, key, "a string or a list of them"));
  for (const Value& word : *list) {
    const auto* text = word.get<std::string>();
    if (text == nullptr) return base::fail(wrong_value(word, key, "a string"));
    words.push_back(*text);
  }
  return words;
}

base::Result<Needs> needs_of(const Value* value) {
  Needs needs;
  if (value == nullptr) return needs;
  if (value->get<Value::Table>() == nullptr) {
    return base::fail(wrong_value(*value, "needs", "a table: { gpus = 2, nvlink = true }"));
  }
  TableKeys keys(*value);
  ASSAY_TRY_VOID(keys.count("gpus", needs.gpus));
  ASSAY_TRY_VOID(keys.parsed("gpu_memory", needs.gpu_memory,
                             [](const std::string& where, std::string_view text) {
                               auto bytes = base::parse_bytes(text);
                               if (!bytes) bytes.error().where = where;
                               return bytes;
                             }));
  ASSAY_TRY_VOID(keys.flag("nvlink", needs.nvlink));
  ASSAY_TRY_VOID(keys.text("tracer", needs.tracer));
  ASSAY_TRY(needs.programs, words_in(keys.take("program"), "program"));
  ASSAY_TRY_VOID(keys.text("works", needs.works));
  ASSAY_TRY_VOID(keys.text("hint", needs.hint));
  ASSAY_TRY_VOID(keys.no_others());
  if ((needs.nvlink || needs.gpu_memory) && needs.gpus == 0) needs.gpus = needs.nvlink ? 2 : 1;
  return needs;
}

base::Result<void> take_kind(const Value& value, TableKeys& keys, Step& step) {
  bool found = false;
  for (const auto& [key, kind] : kStepKeys) {
    const Value* text = keys.take(key);
    if (text == nullptr) continue;
    if (text->get<std::string>() == nullptr || base::trim(*text->get<std::string>()).empty()) {
      return base::fail(wrong_value(*text, key, "a string with something in it"));
    }
    if (found) {
      return base::fail(base::usage_error(
          text->origin().text(), fmt::format("step '{}' does two things", step.name),
          "a step has one of plan, rows, collective, compare, command: make two of it"));
    }
    found = true;
    step.kind = kind;
    step.text = *text->get<std::string>();
    step.origin = text->origin();
  }
  if (found) return {};
  return base::fail(base::usage_error(value.origin().text(),
                                      fmt::format("step '{}' does nothing", step.name),
                                      "give it plan, rows, collective, compare or command"));
}

base::Result<Step> step_of(const Value& value) {
  if (value.get<Value::Table>() == nullptr) {
    return base::fail(wrong_value(value, "step", "a table"));
  }
  TableKeys keys(value);
  Step step{.limit = kUsualLimit};
  ASSAY_TRY_VOID(keys.text("name", step.name));
  if (!is_file_name(step.name)) {
    return base::fail(base::usage_error(value.origin().text(),
                                        fmt::format("'{}' cannot be a step's name", step.name),
                                        "name = \"letters-digits_and.dots\""));
  }
  ASSAY_TRY_VOID(take_kind(value, keys, step));
  ASSAY_TRY(step.with, settings_of(keys.take("with"), "with"));
  ASSAY_TRY(step.needs, needs_of(keys.take("needs")));
  ASSAY_TRY_VOID(
      keys.parsed("limit", step.limit, [](const std::string& where, std::string_view text) {
        auto time = base::parse_seconds(text);
        if (!time) time.error().where = where;
        return time;
      }));
  if (!(step.limit.count() > 0)) {
    return base::fail(base::usage_error(value.origin().text(),
                                        fmt::format("step '{}' has no time", step.name),
                                        "limit = \"10min\", for example"));
  }
  ASSAY_TRY_VOID(keys.count("repeat", step.repeat));
  if (step.repeat < 1 || step.repeat > kMostRepeats) {
    return base::fail(base::usage_error(
        value.origin().text(), fmt::format("repeat = {} is not from 1 to 1000", step.repeat)));
  }
  ASSAY_TRY_VOID(keys.flag("quick", step.quick));
  ASSAY_TRY_VOID(keys.no_others());
  if (step.repeat > 1 && step.kind != StepKind::kCommand) {
    return base::fail(base::usage_error(
        value.origin().text(),
        fmt::format("step '{}' is no command: it is not repeated", step.name), "leave repeat out"));
  }
  return step;
}

base::Result<void> read_steps(const Value* value, Suite& suite) {
  if (value == nullptr) return {};
  const auto* list = value->get<Value::Array>();
  if (list == nullptr) return base::fail(wrong_value(*value, "step", "a list: [[step]]"));
  for (const Value& given : *list) {
    ASSAY_TRY(Step step, step_of(given));
    if (suite.step(step.name) != nullptr) {
      return base::fail(base::usage_error(given.origin().text(),
                                          fmt::format("there is a step '{}' already", step.name),
                                          "names of steps are distinct"));
    }
    suite.steps.push_back(std::move(step));
  }
  return {};
}

// A misspelt setting is told when the file is read, whichever way it would be run.
base::Result<void> check_settings(const Suite& suite) {
  for (const auto& [name, value] : suite.quick) {
    if (suite.settings.contains(name)) continue;
    return base::fail(base::usage_error(
        suite.source, fmt::format("[quick] changes '{}', which is no setting", name),
        "it stands under [settings] as well"));
  }
  for (const Step& step : suite.steps) {
    ASSAY_TRY_VOID(filled_in(suite, step, false));
    ASSAY_TRY_VOID(filled_in(suite, step, true));
  }
  return {};
}

}  // namespace

base::Result<Suite> read_suite(const std::string& text, const std::string& source) {
  ASSAY_TRY(const Value document, spec::parse_toml(text, source));
  Suite suite{
      .name = std::filesystem::path(source).stem().string(), .text = text, .source = source};
  TableKeys keys(document);
  ASSAY_TRY_VOID(keys.text("title", suite.title));
  ASSAY_TRY_VOID(keys.text("reproduces", suite.reproduces));
  ASSAY_TRY_VOID(keys.text("url", suite.url));
  ASSAY_TRY_VOID(keys.text("note", suite.note));
  ASSAY_TRY(suite.settings, settings_of(keys.take("settings"), "settings"));
  ASSAY_TRY(suite.quick, settings_of(keys.take("quick"), "quick"));
  ASSAY_TRY_VOID(read_steps(keys.take("step"), suite));
  ASSAY_TRY_VOID(read_tables(keys.take("table"), keys.take("record"), suite));
  ASSAY_TRY_VOID(keys.no_others());
  if (suite.title.empty() || suite.tables.empty()) {
    return base::fail(base::usage_error(
        source, suite.title.empty() ? "a suite has a title" : "there is no [[table]] of figures",
        "docs/bench.md has the keys"));
  }
  ASSAY_TRY_VOID(check_settings(suite));
  return suite;
}

}  // namespace assay::suite
