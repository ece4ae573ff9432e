#include "suite/folder.h"

#include <fmt/format.h>

#include <array>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "base/version.h"
#include "suite/read_suite.h"

namespace assay::suite {
namespace {

namespace fs = std::filesystem;
using base::Json;

constexpr base::Bytes kLargestKept(16 << 20);
constexpr std::array<std::pair<CaseState, std::string_view>, 5> kStateNames = {{
    {CaseState::kDone, "done"},
    {CaseState::kFailed, "failed"},
    {CaseState::kImpossible, "not possible here"},
    {CaseState::kLeftOut, "left out"},
    {CaseState::kNotReached, "not reached"},
}};

base::Result<Json> read_json(const fs::path& file) {
  ASSAY_TRY(const std::string text, base::read_file(file, kLargestKept));
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) {
    return base::fail(base::unfit_error(file, "is damaged", "start again in another folder"));
  }
  return json;
}

base::Result<void> make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return base::fail(base::system_error(folder, "cannot be created", error.value()));
  return {};
}

// The file may have been edited: other types are treated as missing.
std::string text_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

// Must be the same for a run to be resumed.
std::string machine_name(const SuiteHost& here) {
  return fmt::format("{}: {}", here.machine.hostname, machine::summary(here.machine));
}

}  // namespace

std::string_view to_text(CaseState state) {
  for (const auto& [named, name] : kStateNames) {
    if (named == state) return name;
  }
  return "";
}

base::Result<SuiteFolder> SuiteFolder::create(const fs::path& directory, Suite suite, bool quick,
                                              const SuiteHost& here) {
  std::error_code ignored;
  if (fs::exists(directory / "run.json", ignored)) {
    return base::fail(
        base::usage_error(directory, "already contains a suite run",
                          fmt::format("assay bench --resume {}, or name another folder",
                                      base::shell_quoted(directory.string()))));
  }
  for (const char* part : {"cases", "out"}) ASSAY_TRY_VOID(make_folder(directory / part));
  SuiteFolder folder;
  folder.directory_ = directory;
  folder.quick_ = quick;
  folder.facts_ = {{"suite", suite.name},
                   {"source", suite.source},
                   {"quick", quick},
                   {"begun", base::utc_text(base::system_clock().wall_ns())},
                   {"release", base::version().release},
                   {"commit", base::version().commit},
                   {"on", machine_name(here)},
                   {"machine", machine::to_json(here.machine)}};
  folder.suite_ = std::move(suite);
  ASSAY_TRY_VOID(base::replace_file(directory / "suite.toml", folder.suite_.text));
  ASSAY_TRY_VOID(base::replace_file(directory / "run.json", base::json_text(folder.facts_)));
  return folder;
}

base::Result<SuiteFolder> SuiteFolder::open(const fs::path& directory, const SuiteHost& here) {
  std::error_code ignored;
  if (!fs::exists(directory / "run.json", ignored)) {
    return base::fail(base::usage_error(directory, "contains no suite run",
                                        "--resume takes the folder of an earlier run"));
  }
  SuiteFolder folder;
  folder.directory_ = directory;
  ASSAY_TRY(folder.facts_, read_json(directory / "run.json"));
  const std::string on = text_at(folder.facts_, "on");
  if (on != machine_name(here)) {
    return base::fail(base::unfit_error(
        directory, fmt::format("was begun on another machine ({})", on),
        "resume it there, or start again: figures of two machines cannot be compared"));
  }
  ASSAY_TRY_VOID(make_folder(directory / "cases"));  // called steps by earlier versions
  folder.quick_ = folder.facts_["quick"] == true;
  ASSAY_TRY(const std::string text, base::read_file(directory / "suite.toml", kLargestKept));
  ASSAY_TRY(folder.suite_, read_suite(text, directory / "suite.toml"));
  folder.suite_.name = text_at(folder.facts_, "suite");
  return folder;
}

std::optional<CaseRun> SuiteFolder::kept(const std::string& name) const {
  auto json = read_json(directory_ / "cases" / (name + ".json"));
  if (!json) json = read_json(directory_ / "steps" / (name + ".json"));  // of earlier versions
  if (!json) return std::nullopt;
  CaseRun run{.name = name};
  const std::string state = text_at(*json, "state");
  for (const auto& [named, text] : kStateNames) {
    if (text == state) run.state = named;
  }
  run.why = text_at(*json, "why");
  for (const Json& seconds : json->value("wall_s", Json::array())) {
    if (seconds.is_number()) run.wall_s.push_back(seconds.get<double>());
  }
  for (const Json& file : json->value("outputs", Json::array())) {
    if (file.is_string()) run.outputs.push_back(file.get<std::string>());
  }
  return run;
}

base::Result<void> SuiteFolder::keep(const CaseRun& run) const {
  const Json json = {{"case", run.name},
                     {"state", to_text(run.state)},
                     {"why", run.why},
                     {"wall_s", run.wall_s},
                     {"outputs", run.outputs}};
  return base::replace_file(directory_ / "cases" / (run.name + ".json"), base::json_text(json));
}

}  // namespace assay::suite
