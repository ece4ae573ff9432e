// assay run [options] -- COMMAND: runs a command unchanged and records what it reads and writes.
// Parses the options into a RunRequest; lineage/record/run.h does the rest.
#include "lineage/record/run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "assay/shared/gpu_limits.h"
#include "assay/verbs.h"
#include "base/suggestion.h"
#include "base/text.h"
#include "lineage/reproduce/rerun.h"
#include "store/labels.h"

namespace assay::cli {
namespace {

struct RunOptions {
  std::string tracer = "auto";
  std::vector<std::string> names;  // a list, to distinguish an empty name from none
  bool build = false;
  bool archive = false;
  bool explain = false;
  bool no_wait = false;
  bool here = false;
  bool overwrite = false;
  std::vector<OrderedValue> file_rules;  // --keep, --leave-out
  std::vector<std::string> sets;
  std::string stage;  // "@3"
  std::vector<std::string> command;
  share::GpuLimitOptions gpu;
};

std::vector<std::string> tracer_names() {
  std::vector<std::string> names = {"auto"};
  for (const collect::Tracer tracer : collect::kTracers) names.emplace_back(name_of(tracer));
  return names;
}

base::Result<std::optional<collect::Tracer>> tracer_of(const std::string& name) {
  if (name == "auto") return std::nullopt;
  for (const collect::Tracer tracer : collect::kTracers) {
    if (name_of(tracer) == name) return tracer;
  }
  const std::vector<std::string> names = tracer_names();
  std::string hint = base::suggestion(name, names);
  if (hint.empty()) hint = fmt::format("one of {}", fmt::join(names, ", "));
  return base::fail(
      base::usage_error("run --tracer", fmt::format("unknown tracer '{}'", name), hint));
}

// `@3`: the project's stage 3 as recorded, with --set applied.
base::Result<lineage::RunRequest> request_of(const RunOptions& options) {
  if (!options.stage.empty() && !options.command.empty()) {
    return base::fail(base::usage_error(
        fmt::format("run {}", options.stage),
        fmt::format("a stage has its own arguments; '{}' cannot be added", options.command.front()),
        "change a value with --set KEY=VALUE, or give the whole command"));
  }
  if (!options.stage.empty()) {
    return lineage::stage_request(options.stage.substr(1),
                                  {.sets = options.sets,
                                   .here = options.here,
                                   .edited = options.overwrite ? lineage::EditedOutputs::kOverwrite
                                                               : lineage::EditedOutputs::kKeep});
  }
  if (options.command.empty()) {
    return base::fail(
        base::usage_error("run", "no command given", "assay run -- COMMAND [ARGUMENT…]"));
  }
  if (!options.sets.empty()) {
    return base::fail(
        base::usage_error("run --set", "works only with a stage", "assay run @N --set KEY=VALUE"));
  }
  if (options.here || options.overwrite) {
    const std::string option = options.here ? "--here" : "--overwrite";
    return base::fail(base::usage_error("run " + option, "works only with a stage",
                                        fmt::format("assay run @N {}", option)));
  }
  return lineage::RunRequest{.command = options.command};
}

base::Result<base::ExitCode> run(const Session& session, const RunOptions& options) {
  ASSAY_TRY(const auto tracer, tracer_of(options.tracer));
  ASSAY_TRY(lineage::RunRequest request, request_of(options));
  if (tracer) request.tracer = tracer;
  if (!options.names.empty()) {
    // It can be used wherever a run is named, like a label.
    if (auto usable = store::check_label(options.names.back()); !usable) {
      usable.error().where = fmt::format("run --name '{}'", options.names.back());
      return base::fail(std::move(usable).error());
    }
    request.name = options.names.back();
  }
  request.build = request.build || options.build;
  request.archive = request.archive || options.archive;
  request.archive_note = !session.quiet;
  request.explain = options.explain;
  request.wait = !options.no_wait;
  if (session.json) {
    request.summary = lineage::SummaryFormat::kJson;
  } else if (!session.quiet && ::isatty(STDERR_FILENO) == 1) {
    request.summary = lineage::SummaryFormat::kLine;
  }
  for (const OrderedValue& given : options.file_rules) {
    request.user_rules.push_back({given.value, given.option == "--keep"});
  }
  share::add_options(options.gpu, request.gpu_options);
  ASSAY_TRY(request.gpu_limits, limits_of_run(request.gpu_options));
  ASSAY_TRY(lineage::StageStreams streams, lineage::enter_stage(request, session.quiet));
  ASSAY_TRY(const collect::KeeperResult result, lineage::run_command(request, std::move(streams)));
  collect::exit_with_status(result);
}

}  // namespace

Verb run_verb(const Session& session) {
  const auto options = std::make_shared<RunOptions>();
  Verb verb = {
      .name = "run",
      .description = "run a command unchanged and record what it reads and writes, by content",
      .examples = {"assay run -- echo hello", "assay run --tracer ptrace -- cat /etc/hostname",
                   "assay run --explain -- true"},
      .options = {{"--tracer", "how to observe the command: auto, preload, ebpf or ptrace",
                   &options->tracer, tracer_names, "NAME"},
                  {"--name",
                   "a name for the run, usable in place of its number",
                   &options->names,
                   {},
                   "NAME",
                   false,
                   true},
                  {"--build", "mark it as a stage that prepares the environment", &options->build},
                  {"--archive",
                   "archive the outputs so that they can be restored; prints the space used",
                   &options->archive},
                  {"--keep",
                   "record files that the filter would leave out",
                   &options->file_rules,
                   {},
                   "PATTERN"},
                  {"--leave-out",
                   "leave out files that the filter would record",
                   &options->file_rules,
                   {},
                   "PATTERN"},
                  {"--explain", "print for every file why it was kept or left out",
                   &options->explain},
                  {"--no-wait",
                   "do not wait for processes that the command leaves running; they are recorded "
                   "in the background",
                   &options->no_wait},
                  {"--set", "with @N: change the value of an argument", &options->sets},
                  {"--here",
                   "with @N: leave standard input, output and error as they are now, instead of "
                   "the stage's files",
                   &options->here},
                  {"--overwrite", "with @N: overwrite outputs that were changed by hand, too",
                   &options->overwrite}},
      .wrapped = {"COMMAND", "the command and its arguments, or @N for stage N", &options->command,
                  &options->stage},
      .action = [&session, options] { return run(session, *options); }};
  add_limit_options(options->gpu, verb.options);
  return verb;
}

}  // namespace assay::cli
