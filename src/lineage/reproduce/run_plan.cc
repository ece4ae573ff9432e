#include "lineage/reproduce/run_plan.h"

#include <fmt/format.h>

#include "base/scratch_folder.h"
#include "lineage/export/common.h"
#include "lineage/graph/dag_view.h"
#include "lineage/reproduce/stage_runner.h"

namespace assay::lineage {
namespace {

namespace fs = std::filesystem;

base::Result<fs::path> fresh_folder(const fs::path& wanted) {
  if (wanted.empty()) return base::make_temporary_folder("assay-reproduce-");
  std::error_code error;
  fs::create_directories(wanted, error);
  const fs::path folder = fs::canonical(wanted, error);
  if (error || !fs::is_directory(folder, error)) {
    return base::fail(base::usage_error(wanted.string(), "cannot be created as a folder"));
  }
  if (!fs::is_empty(folder, error)) {
    return base::fail(base::usage_error(wanted.string(), "is not empty", "choose a new folder"));
  }
  return folder;
}

// The last stage that writes the file makes it. Nothing: it was not compared.
std::optional<OutputComparison> find_output(const std::string& path,
                                            const std::vector<StageResult>& stages) {
  for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
    for (const OutputComparison& output : stage->outputs) {
      if (output.match != OutputMatch::kExtra && output.path == path) return output;
    }
  }
  return std::nullopt;
}

// The result for a folder is that of its worst file.
void add_folder(const ReproductionPlan& plan, Reproduction& done) {
  const auto severity = [](OutputMatch match) {
    return match == OutputMatch::kDifferent ? 3
           : match == OutputMatch::kMissing ? 2
           : match == OutputMatch::kUnknown ? 1
                                            : 0;
  };
  OutputMatch worst = OutputMatch::kIdentical;
  for (const OutputComparison& file : compared_files(plan, done.stages)) {
    if (severity(file.match) > severity(worst)) worst = file.match;
    if (file.match == OutputMatch::kUnknown && done.undecided.empty()) {
      done.undecided = file.path + " could not be compared";
    }
  }
  done.artifact = {plan.artifact_path, worst, std::nullopt, std::nullopt};
}

base::Json comparison_json(const OutputComparison& one) {
  const auto hex = [](const std::optional<hash::Digest>& digest) {
    return digest ? base::Json(digest->hex()) : base::Json();
  };
  return {{"path", one.path},
          {"verdict", to_text(one.match)},
          {"recorded", hex(one.recorded)},
          {"now", hex(one.now)}};
}

}  // namespace

std::string_view to_text(OutputMatch match) {
  switch (match) {
    case OutputMatch::kIdentical:
      return "identical";
    case OutputMatch::kDifferent:
      return "different";
    case OutputMatch::kMissing:
      return "missing";
    case OutputMatch::kExtra:
      return "extra";
    case OutputMatch::kUnknown:
      break;
  }
  return "unknown";
}

std::vector<OutputComparison> compared_files(const ReproductionPlan& plan,
                                             const std::vector<StageResult>& stages) {
  std::vector<OutputComparison> files;
  for (const std::string& path : plan.folder_files) {
    files.push_back(
        find_output(path, stages)
            .value_or(OutputComparison{path, OutputMatch::kUnknown, std::nullopt, std::nullopt}));
  }
  return files;
}

base::ExitCode Reproduction::exit_code() const {
  if (artifact) {
    if (artifact->match == OutputMatch::kIdentical) return base::ExitCode::kYes;
    return artifact->match == OutputMatch::kUnknown ? base::ExitCode::kInconclusive
                                                    : base::ExitCode::kNo;
  }
  bool unknown = !undecided.empty();
  for (const StageResult& stage : stages) {
    for (const OutputComparison& output : stage.outputs) {
      if (output.match == OutputMatch::kDifferent || output.match == OutputMatch::kMissing) {
        return base::ExitCode::kNo;
      }
      unknown = unknown || output.match == OutputMatch::kUnknown;
    }
  }
  return unknown ? base::ExitCode::kInconclusive : base::ExitCode::kYes;
}

base::Result<Reproduction> run_plan(const ReproductionPlan& plan, const RunPlanOptions& options) {
  Reproduction done;
  for (const Obstacle& obstacle : plan.obstacles) {
    if (obstacle.outside && options.allow_outside) continue;
    done.undecided = obstacle.text;
    return done;
  }
  ASSAY_TRY(done.directory, fresh_folder(options.directory));
  StageRunner runner(plan, options, done.directory);
  if (!runner.protects_project()) {
    options.progress(fmt::format(
        "{} is not protected, because this machine does not let stages have mounts of their own: a "
        "stage that finds its path in a file can write to it",
        plan.root));
  }
  for (const std::string& environment : plan.environments) {
    options.progress(fmt::format("{} {}", environment, runner.environment_text()));
  }
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    const PlannedStage& stage = plan.stages[i];
    options.progress(
        fmt::format("stage {} of {}: {}", i + 1, plan.stages.size(), command_text(stage.run)));
    auto verdict = runner.run(stage);
    if (!verdict) {
      done.undecided = fmt::format("run {}: {}", stage.run.id, verdict.error().line());
      return done;
    }
    done.stages.push_back(*std::move(verdict));
    if (done.stages.back().exit_code != stage.run.exit_code.value_or(0)) {
      done.undecided =
          fmt::format("run {} ended with exit code {} when recorded, now with {}", stage.run.id,
                      stage.run.exit_code.value_or(0), done.stages.back().exit_code);
      return done;
    }
  }
  if (plan.artifact_path.empty()) return done;
  if (!plan.folder_files.empty()) {
    add_folder(plan, done);
    return done;
  }
  done.artifact = find_output(plan.artifact_path, done.stages);
  if (!done.artifact) done.undecided = "no stage of the plan makes " + plan.artifact_path;
  return done;
}

bool remove_if_identical(Reproduction& done) {
  if (done.directory.empty() || done.exit_code() != base::ExitCode::kYes) return false;
  for (const StageResult& stage : done.stages) {
    for (const OutputComparison& output : stage.outputs) {
      if (output.match != OutputMatch::kIdentical) return false;
    }
  }
  std::error_code error;
  // Stages may have made folders that even their owner cannot write to.
  for (fs::recursive_directory_iterator entry(done.directory, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!entry->is_directory() || entry->is_symlink()) continue;
    fs::permissions(entry->path(), fs::perms::owner_all, fs::perm_options::add, error);
  }
  fs::remove_all(done.directory, error);
  if (fs::exists(done.directory, error)) return false;
  done.directory.clear();
  return true;
}

base::Json to_json(const Reproduction& reproduction) {
  base::Json stages = base::Json::array();
  for (const StageResult& stage : reproduction.stages) {
    base::Json outputs = base::Json::array();
    for (const OutputComparison& one : stage.outputs) outputs.push_back(comparison_json(one));
    stages.push_back({{"run", stage.run},
                      {"exit_code", stage.exit_code},
                      {"duration_s", stage.duration_s},
                      {"outputs", std::move(outputs)}});
  }
  return {
      {"directory", base::or_null(reproduction.directory.string())},
      {"artifact", reproduction.artifact ? comparison_json(*reproduction.artifact) : base::Json()},
      {"stages", std::move(stages)},
      {"undecided", base::or_null(reproduction.undecided)}};
}

}  // namespace assay::lineage
