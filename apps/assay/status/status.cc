// assay status: the project's stages, and which of them are stale.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "assay/project.h"
#include "assay/shared/run_text.h"
#include "assay/verbs.h"
#include "base/process/environment.h"
#include "base/text.h"
#include "lineage/graph/dag_view.h"
#include "lineage/graph/result_variables.h"
#include "lineage/graph/stage_states.h"
#include "lineage/redact/command.h"
#include "store/run_reader.h"
#include "store/stages.h"

namespace assay::cli {
namespace {

// The name, or name-2, name-3, … if that is taken.
std::string free_name(const std::filesystem::path& directory, const std::string& name) {
  std::error_code ignored;
  std::string free = name;
  for (int i = 2; std::filesystem::exists(directory / free, ignored); ++i) {
    free = fmt::format("{}-{}", name, i);
  }
  return free;
}

// Whether the stage's standard output or error replaces the file.
bool is_redirected_over(const store::RunRecord& run, const std::string& path) {
  return std::any_of(run.redirects.begin(), run.redirects.end(), [&](const std::string& redirect) {
    return redirect.ends_with(">" + path) && !redirect.ends_with(">>" + path);
  });
}

// What running it again does to a file that it left.
std::string_view effect_on(const lineage::LiveStages& stages, std::size_t stage,
                           const std::string& path) {
  for (const std::string& redirect : stages.runs()[stage].redirects) {
    if (redirect.ends_with(">>" + path)) return "appends to";
  }
  return stages.reads(stage, path) ? "changes" : "overwrites";
}

// The next command must not destroy an edit that exists nowhere else, nor leave the stage without
// a file that it changes in place.
void print_edited(const Session& session, const std::filesystem::path& directory,
                  const std::vector<std::string>& edited, const lineage::LiveStages& stages,
                  std::size_t stage) {
  const std::int64_t number = stages.runs()[stage].stage;
  std::string keep;
  std::string run;     // that make what this stage changes in place
  bool stays = false;  // an edited file, of which there is a copy
  for (const std::string& path : edited) {
    const auto maker = stages.maker(stage, path);
    if (!maker || !stages.reads(stage, path)) continue;
    const std::string again = fmt::format("assay run @{} && ", stages.runs()[*maker].stage);
    if (run.find(again) == std::string::npos) run += again;
  }
  for (const std::string& path : edited) {
    const std::string name = lineage::shown_path(path, directory);
    session.print(fmt::format("\n{}: changed by hand; running stage {} again {} it\n",
                              base::printable(name), number, effect_on(stages, stage, path)));
    // What is read and nothing makes has to stay.
    const bool needed = stages.reads(stage, path) && !stages.maker(stage, path);
    const bool moved = is_redirected_over(stages.runs()[stage], path) || !run.empty();
    const std::string_view how = moved && !needed ? "mv" : "cp";
    stays = stays || how == "cp";
    keep += fmt::format("{} {} {} && ", how, base::path_argument(name),
                        base::path_argument(free_name(directory, name + ".edited")));
  }
  run += run.empty() ? fmt::format("assay run @{}", number) : "assay refresh";
  if (stays) run += " --overwrite";
  session.next(keep + run);
}

// Their stages can be told apart by the folder only.
std::set<std::vector<std::string>> commands_of_several_folders(const lineage::LiveStages& stages) {
  std::map<std::vector<std::string>, std::string> folders;
  std::set<std::vector<std::string>> several;
  for (const store::RunRecord& run : stages.runs()) {
    const auto [known, first] = folders.emplace(run.command, run.directory);
    if (!first && known->second != run.directory) several.insert(run.command);
  }
  return several;
}

// A stage that is run again gets the environment of this shell, which may give another result.
struct VariableNotes {
  base::Json json = base::Json::array();
  std::string text;  // a line for each variable; empty: none
};
base::Result<VariableNotes> variable_notes(store::Store& store, const store::RunRecord& stage) {
  ASSAY_TRY(const store::RunRecord run, store::head_of(store, stage.id, store::WithContext::kYes));
  VariableNotes notes;
  const auto value = [](const std::string& text) {
    return text.empty() ? std::string("not set") : base::shell_quoted(base::shortened(text, 60));
  };
  for (const lineage::VariableDifference& one : lineage::result_variable_differences(
           run.context.environment,
           lineage::redact_environment(base::Environment::from_current().entries()))) {
    notes.json.push_back({{"name", one.name}, {"recorded", one.recorded}, {"here", one.here}});
    notes.text += fmt::format("note: stage {} ran with {} {}; here it is {}\n", stage.stage,
                              base::printable(one.name), base::printable(value(one.recorded)),
                              base::printable(value(one.here)));
  }
  return notes;
}

// A later run of the stage that did not succeed, which changes nothing about what is fresh.
std::string attempt_note(const store::RunRecord& attempt, const store::RunRecord& current) {
  return fmt::format(
      "note: stage {} was tried again: run {}, {}; run {} is the last that was done\n",
      current.stage, attempt.id, outcome_text(attempt), current.id);
}

base::Json attempt_json(const store::RunRecord& attempt) {
  return {{"run", attempt.id},
          {"status", store::name_of(attempt.status)},
          {"exit_code", base::or_null(attempt.exit_code)},
          {"signal", base::or_null(attempt.signal)}};
}

// How a stage is, and why, for people and programs.
struct StageAnswer {
  std::string_view state;  // "fresh", "unsure", "stale", "replaced"
  std::vector<lineage::Reason> why;
  std::vector<lineage::Reason> doubts;
};

StageAnswer answer_of(const lineage::StageStates& states, std::size_t stage) {
  StageAnswer answer{"fresh", states.reasons[stage], states.doubts[stage]};
  if (!answer.why.empty()) answer.state = "stale";
  const auto& replaced = states.replaced[stage];
  if (answer.why.empty() && !replaced.empty()) answer.state = "replaced";
  if (answer.state == "fresh" && !answer.doubts.empty()) answer.state = "unsure";
  answer.why.insert(answer.why.end(), replaced.begin(), replaced.end());
  return answer;
}

base::Json reason_json(const lineage::Reason& reason) {
  return {{"path", base::or_null(reason.path)},
          {"stage", reason.stage == 0 ? base::Json(nullptr) : base::Json(reason.stage)},
          {"cause", lineage::name_of(reason.cause)},
          {"written_by_run",
           reason.writer.value_or(0) == 0 ? base::Json(nullptr) : base::Json(*reason.writer)}};
}

base::Result<base::ExitCode> status(const Session& session, bool strict) {
  ASSAY_TRY(store::Store store, open_store());
  ASSAY_TRY(const std::filesystem::path directory, working_directory());
  ASSAY_TRY(const lineage::StageStates states, lineage::load_stage_states(store));
  const lineage::LiveStages& stages = states.stages;
  const auto& reasons = states.reasons;
  using Attempts = std::map<std::int64_t, store::RunRecord>;
  ASSAY_TRY(const Attempts attempts, store::failed_attempts(store));

  const auto shown = [&](const std::string& path) {
    return base::printable(lineage::shown_path(path, directory));
  };
  base::Json list = base::Json::array();
  base::Table table({"stage", "run", "state", "command", "why"});
  std::optional<std::int64_t> first_stale;
  bool any_unsure = false;
  std::size_t stale_index = 0;      // of that stage
  std::vector<std::string> edited;  // outputs of that stage
  std::string notes;
  const std::set<std::vector<std::string>> ambiguous = commands_of_several_folders(stages);
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    const store::RunRecord& run = stages.runs()[i];
    const bool stale = !reasons[i].empty();
    if (stale && !first_stale) {
      first_stale = run.stage;
      stale_index = i;
    }
    base::Json why = base::Json::array();
    base::Json reason_list = base::Json::array();
    base::Json doubts = base::Json::array();
    const StageAnswer answer = answer_of(states, i);
    any_unsure = any_unsure || !answer.doubts.empty();
    for (const lineage::Reason& doubt : answer.doubts) {
      base::Json one = reason_json(doubt);
      one["text"] = doubt.text(shown);
      doubts.push_back(std::move(one));
    }
    for (const lineage::Reason& reason : answer.why) {
      why.push_back(reason.text(shown));
      reason_list.push_back(reason_json(reason));
      // Unrecorded content would be lost if the stage ran again.
      if (reason.cause == lineage::Cause::kOutputChanged && reason.writer == 0 &&
          first_stale == run.stage) {
        edited.push_back(reason.path);
      }
    }
    const auto& told = answer.why.empty() ? answer.doubts : answer.why;
    std::string text = told.empty() ? "" : told.front().text(shown);
    if (told.size() > 1) text += fmt::format(", and {} more", told.size() - 1);
    table.row(
        {fmt::format("{}", run.stage), fmt::format("{}", run.id), std::string(answer.state),
         log_command(run) + (ambiguous.contains(run.command) ? "  in " + shown(run.directory) : ""),
         text});
    ASSAY_TRY(VariableNotes variables, variable_notes(store, run));
    const auto attempt = attempts.find(run.stage);
    if (attempt != attempts.end()) notes += attempt_note(attempt->second, run);
    notes += variables.text;
    list.push_back({{"stage", run.stage},
                    {"run", run.id},
                    {"command", lineage::recorded_command_text(run)},
                    {"state", answer.state},
                    {"stale", stale},
                    {"why", std::move(why)},
                    {"reasons", std::move(reason_list)},
                    {"doubts", std::move(doubts)},
                    {"failed_attempt",
                     attempt == attempts.end() ? base::Json() : attempt_json(attempt->second)},
                    {"variables", std::move(variables.json)}});
  }
  session.print_json(base::Json{
      {"stale", first_stale.has_value()}, {"unsure", any_unsure}, {"stages", std::move(list)}});
  if (reasons.empty()) {
    session.print("no run has succeeded yet\n");
    session.next("assay run --help");
    return base::ExitCode::kYes;
  }
  session.print(table);
  if (!notes.empty()) session.print("\n" + notes);
  if (edited.empty()) {
    session.next(first_stale ? "assay refresh" : "assay dag");
  } else {
    print_edited(session, directory, edited, stages, stale_index);
  }
  return first_stale || (strict && any_unsure) ? base::ExitCode::kNo : base::ExitCode::kYes;
}

}  // namespace

Verb status_verb(const Session& session) {
  const auto strict = std::make_shared<bool>(false);
  return {.name = "status",
          .description = "list the project's stages; exits 1 if any is stale",
          .examples = {"assay status", "assay status --json"},
          .options = {{"--strict", "exit with 1 also if it is not known whether a stage is fresh",
                       strict.get()}},
          .action = [&session, strict] { return status(session, *strict); }};
}

}  // namespace assay::cli
