#include "suite/read_suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/file.h"
#include "base/suggestion.h"
#include "base/text.h"
#include "spec/table_keys.h"
#include "spec/toml.h"
#include "suite/read_figures.h"

namespace assay::suite {
namespace {

using spec::TableKeys;
using spec::Value;
using spec::wrong_value;

constexpr base::Seconds kUsualLimit(600);
constexpr std::int64_t kMostRepeats = 1000;
constexpr std::array<std::pair<const char*, CaseKind>, 5> kCaseKeys = {{
    {"plan", CaseKind::kPlan},
    {"rows", CaseKind::kRows},
    {"collective", CaseKind::kCollective},
    {"compare", CaseKind::kCompare},
    {"command", CaseKind::kCommand},
}};
// Names become file names and command-line arguments.
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

base::Result<std::vector<std::string>> strings_in(const Value* value, const char* key) {
  std::vector<std::string> strings;
  if (value == nullptr) return strings;
  if (const auto* one = value->get<std::string>()) return std::vector<std::string>{*one};
  const auto* list = value->get<Value::Array>();
  if (list == nullptr) return base::fail(wrong_value(*value, key, "a string or a list of them"));
  for (const Value& each : *list) {
    const auto* text = each.get<std::string>();
    if (text == nullptr) return base::fail(wrong_value(each, key, "a string"));
    strings.push_back(*text);
  }
  return strings;
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
  ASSAY_TRY(needs.programs, strings_in(keys.take("program"), "program"));
  ASSAY_TRY_VOID(keys.text("works", needs.works));
  ASSAY_TRY_VOID(keys.text("hint", needs.hint));
  ASSAY_TRY_VOID(keys.no_others());
  if ((needs.nvlink || needs.gpu_memory) && needs.gpus == 0) needs.gpus = needs.nvlink ? 2 : 1;
  return needs;
}

base::Result<void> take_kind(const Value& value, TableKeys& keys, SuiteCase& suite_case) {
  bool found = false;
  for (const auto& [key, kind] : kCaseKeys) {
    const Value* text = keys.take(key);
    if (text == nullptr) continue;
    if (text->get<std::string>() == nullptr || base::trim(*text->get<std::string>()).empty()) {
      return base::fail(wrong_value(*text, key, "a non-empty string"));
    }
    if (found) {
      return base::fail(base::usage_error(
          text->origin().text(), fmt::format("case '{}' has more than one action", suite_case.name),
          "a case has one of plan, rows, collective, compare, command: make it two cases"));
    }
    found = true;
    suite_case.kind = kind;
    suite_case.text = *text->get<std::string>();
    suite_case.origin = text->origin();
  }
  if (found) return {};
  return base::fail(base::usage_error(value.origin().text(),
                                      fmt::format("case '{}' has no action", suite_case.name),
                                      "give it plan, rows, collective, compare or command"));
}

base::Result<SuiteCase> case_of(const Value& value) {
  if (value.get<Value::Table>() == nullptr) {
    return base::fail(wrong_value(value, "case", "a table"));
  }
  TableKeys keys(value);
  SuiteCase suite_case{.limit = kUsualLimit};
  ASSAY_TRY_VOID(keys.text("name", suite_case.name));
  if (!is_file_name(suite_case.name)) {
    return base::fail(base::usage_error(
        value.origin().text(), fmt::format("'{}' cannot be the name of a case", suite_case.name),
        "name = \"letters-digits_and.dots\""));
  }
  ASSAY_TRY_VOID(take_kind(value, keys, suite_case));
  ASSAY_TRY(suite_case.with, settings_of(keys.take("with"), "with"));
  ASSAY_TRY(suite_case.needs, needs_of(keys.take("needs")));
  ASSAY_TRY_VOID(
      keys.parsed("limit", suite_case.limit, [](const std::string& where, std::string_view text) {
        auto time = base::parse_seconds(text);
        if (!time) time.error().where = where;
        return time;
      }));
  if (!(suite_case.limit.count() > 0)) {
    return base::fail(base::usage_error(value.origin().text(),
                                        fmt::format("case '{}' has no time limit", suite_case.name),
                                        "limit = \"10min\", for example"));
  }
  ASSAY_TRY_VOID(keys.count("repeat", suite_case.repeat));
  if (suite_case.repeat < 1 || suite_case.repeat > kMostRepeats) {
    return base::fail(
        base::usage_error(value.origin().text(),
                          fmt::format("repeat = {} is not from 1 to 1000", suite_case.repeat)));
  }
  ASSAY_TRY_VOID(keys.flag("quick", suite_case.quick));
  ASSAY_TRY_VOID(keys.flag("in_fit", suite_case.in_fit));
  ASSAY_TRY_VOID(keys.no_others());
  if (suite_case.repeat > 1 && suite_case.kind != CaseKind::kCommand) {
    return base::fail(base::usage_error(
        value.origin().text(),
        fmt::format("case '{}' is not a command: it cannot be repeated", suite_case.name),
        "leave repeat out"));
  }
  return suite_case;
}

base::Result<void> read_cases(const Value* value, const char* key, Suite& suite) {
  if (value == nullptr) return {};
  const auto* list = value->get<Value::Array>();
  if (list == nullptr) {
    return base::fail(wrong_value(*value, key, fmt::format("a list: [[{}]]", key)));
  }
  for (const Value& given : *list) {
    ASSAY_TRY(SuiteCase read, case_of(given));
    if (suite.find_case(read.name) != nullptr) {
      return base::fail(base::usage_error(given.origin().text(),
                                          fmt::format("there is a case '{}' already", read.name),
                                          "names of cases must be distinct"));
    }
    suite.cases.push_back(std::move(read));
  }
  return {};
}

// So that a misspelt setting is an error when the file is read, quick or not.
base::Result<void> check_settings(const Suite& suite) {
  for (const auto& [name, value] : suite.quick) {
    if (suite.settings.contains(name)) continue;
    return base::fail(base::usage_error(
        suite.source, fmt::format("[quick] changes '{}', which is not a setting", name),
        "define it under [settings] first"));
  }
  for (const SuiteCase& suite_case : suite.cases) {
    ASSAY_TRY_VOID(filled_in(suite, suite_case, false));
    ASSAY_TRY_VOID(filled_in(suite, suite_case, true));
  }
  return {};
}

constexpr std::string_view kExtension = ".toml";
constexpr base::Bytes kLargestSuite(1 << 20);

std::string name_of_file(std::string_view file) {
  file.remove_suffix(kExtension.size());
  return std::string(file);
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
  ASSAY_TRY_VOID(read_cases(keys.take("case"), "case", suite));
  ASSAY_TRY_VOID(read_cases(keys.take("step"), "step", suite));  // files of earlier versions
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

std::vector<std::string> suite_names() {
  std::vector<std::string> names;
  for (const base::EmbeddedFile& file : embedded_files()) names.push_back(name_of_file(file.path));
  return names;
}

base::Result<Suite> find_suite(const std::string& reference) {
  if (reference.find('/') != std::string::npos || reference.ends_with(kExtension)) {
    ASSAY_TRY(const std::string text,
              base::read_file(reference, kLargestSuite, base::Pipes::kRead));
    return read_suite(text, reference);
  }
  for (const base::EmbeddedFile& file : embedded_files()) {
    if (name_of_file(file.path) != reference) continue;
    return read_suite(std::string(file.contents), "bench/suites/" + std::string(file.path));
  }
  const std::vector<std::string> names = suite_names();
  return base::fail(base::usage_error("bench", fmt::format("unknown suite '{}'", reference),
                                      base::suggestion(reference, names)));
}

}  // namespace assay::suite
