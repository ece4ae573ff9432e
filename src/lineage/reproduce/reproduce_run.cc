#include "lineage/reproduce/reproduce_run.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>

#include "lineage/export/parts.h"
#include "lineage/graph/dag_view.h"
#include "lineage/reproduce/step_runner.h"

namespace assay::lineage {
namespace {

namespace fs = std::filesystem;

base::Result<fs::path> fresh_folder(const fs::path& wanted) {
  std::error_code error;
  if (wanted.empty()) {
    std::string pattern = (fs::temp_directory_path(error) / "assay-reproduce-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) {
      return base::fail(base::system_error(pattern, "cannot make a folder", errno));
    }
    return fs::path(pattern);
  }
  fs::create_directories(wanted, error);
  const fs::path folder = fs::canonical(wanted, error);
  if (error || !fs::is_directory(folder, error)) {
    return base::fail(base::usage_error(wanted.string(), "cannot be made a folder"));
  }
  if (!fs::is_empty(folder, error)) {
    return base::fail(base::usage_error(wanted.string(), "is not empty", "choose a new folder"));
  }
  return folder;
}

}  // namespace

std::string_view to_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::kIdentical:
      return "identical";
    case Verdict::kDifferent:
      return "different";
    case Verdict::kMissing:
      return "missing";
    case Verdict::kExtra:
      return "extra";
    case Verdict::kUnknown:
      break;
  }
  return "unknown";
}

base::ExitCode Reproduction::exit_code() const {
  bool unknown = !undecided.empty();
  for (const StepVerdict& step : steps) {
    for (const OutputVerdict& output : step.outputs) {
      if (output.verdict == Verdict::kDifferent || output.verdict == Verdict::kMissing) {
        return base::ExitCode::kNo;
      }
      unknown = unknown || output.verdict == Verdict::kUnknown;
    }
  }
  return unknown ? base::ExitCode::kInconclusive : base::ExitCode::kYes;
}

base::Result<Reproduction> run_plan(const Plan& plan, const RunPlanOptions& options) {
  Reproduction done;
  for (const Obstacle& obstacle : plan.obstacles) {
    if (obstacle.outside && options.allow_outside) continue;
    done.undecided = obstacle.text;
    return done;
  }
  ASSAY_TRY(done.directory, fresh_folder(options.directory));
  StepRunner runner(plan, options, done.directory);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    options.progress(
        fmt::format("step {} of {}: {}", i + 1, plan.steps.size(), command_text(step.job)));
    auto verdict = runner.run(step);
    if (!verdict) {
      done.undecided = fmt::format("job {}: {}", step.job.id, verdict.error().line());
      return done;
    }
    done.steps.push_back(*std::move(verdict));
    if (done.steps.back().exit_code != step.job.exit_code.value_or(0)) {
      done.undecided = fmt::format("job {} ended with exit code {}, then with {}", step.job.id,
                                   step.job.exit_code.value_or(0), done.steps.back().exit_code);
      return done;
    }
  }
  return done;
}

base::Json to_json(const Reproduction& reproduction) {
  base::Json steps = base::Json::array();
  for (const StepVerdict& step : reproduction.steps) {
    base::Json outputs = base::Json::array();
    for (const OutputVerdict& one : step.outputs) {
      const auto hex = [](const std::optional<hash::Digest>& digest) {
        return digest ? base::Json(digest->hex()) : base::Json();
      };
      outputs.push_back({{"path", one.path},
                         {"verdict", to_text(one.verdict)},
                         {"recorded", hex(one.recorded)},
                         {"now", hex(one.now)}});
    }
    steps.push_back({{"job", step.job},
                     {"exit_code", step.exit_code},
                     {"duration_s", step.duration_s},
                     {"outputs", std::move(outputs)}});
  }
  return {{"directory", reproduction.directory.string()},
          {"steps", std::move(steps)},
          {"undecided",
           reproduction.undecided.empty() ? base::Json() : base::Json(reproduction.undecided)}};
}

}  // namespace assay::lineage
