// assay run [options] -- COMMAND: runs a command as it is and records what it reads and writes.
#include "lineage/record/run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "assay/limit/gpu_limits.h"
#include "assay/verbs.h"
#include "base/text.h"
#include "lineage/reproduce/stage_words.h"
#include "store/labels.h"

namespace assay::cli {
namespace {

struct Options {
  std::string tracer = "auto";
  std::vector<std::string> names;  // a list, so that an empty one can be told from none
  bool build = false;
  bool explain = false;
  bool no_wait = false;
  std::vector<OrderedValue> choices;
  std::vector<std::string> sets;
  std::string stage;  // "@3"
  std::vector<std::string> words;
  share::LimitWords gpu;
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

// `@3`: the project's stage 3 as it ran, with --set applied.
base::Result<lineage::RunRequest> request_of(const Options& options) {
  if (!options.stage.empty() && !options.words.empty()) {
    return base::fail(base::usage_error(
        fmt::format("run {}", options.stage),
        fmt::format("the stage has its own words, and '{}' is none of them", options.words.front()),
        "change a value with --set KEY=VALUE, or give the whole command"));
  }
  if (!options.stage.empty()) return lineage::stage_request(options.stage.substr(1), options.sets);
  if (options.words.empty()) {
    return base::fail(
        base::usage_error("run", "no command given", "assay run -- COMMAND [ARGUMENT…]"));
  }
  if (options.sets.empty()) return lineage::RunRequest{.words = options.words};
  return base::fail(base::usage_error("run --set", "changes a stage that is run again",
                                      "assay run @N --set KEY=VALUE"));
}

base::Result<base::ExitCode> run(const Session& session, const Options& options) {
  ASSAY_TRY(const auto tracer, tracer_of(options.tracer));
  ASSAY_TRY(lineage::RunRequest request, request_of(options));
  if (tracer) request.tracer = tracer;
  if (!options.names.empty()) {
    // It stands wherever a run is named, as a label does.
    if (auto usable = store::check_label(options.names.back()); !usable) {
      usable.error().where = fmt::format("run --name '{}'", options.names.back());
      return base::fail(std::move(usable).error());
    }
    request.name = options.names.back();
  }
  request.build = request.build || options.build;
  request.explain = options.explain;
  request.wait = !options.no_wait;
  request.summary = !session.quiet && ::isatty(STDERR_FILENO) == 1;
  for (const OrderedValue& given : options.choices) {
    request.choices.push_back({given.value, given.option == "--keep"});
  }
  share::add_words(options.gpu, request.gpu_words);
  ASSAY_TRY(request.gpu_limits, limits_of_run(request.gpu_words));
  ASSAY_TRY_VOID(lineage::enter_stage(request));
  ASSAY_TRY(const collect::Kept kept, lineage::run_command(request));
  if (kept.wait_status) collect::end_like(*kept.wait_status);
  ::_exit(kept.collector_lost ? static_cast<int>(base::ExitCode::kUnfit) : kept.collector_status);
}

}  // namespace

Verb run_verb(const Session& session) {
  const auto options = std::make_shared<Options>();
  Verb verb = {
      .name = "run",
      .description = "run a command as it is and record what it reads and writes, by content",
      .examples = {"assay run -- echo hello", "assay run --tracer ptrace -- cat /etc/hostname",
                   "assay run --explain -- true"},
      .options = {{"--tracer", "how to look: auto, preload, ebpf or ptrace", &options->tracer,
                   tracer_names, "NAME"},
                  {"--name",
                   "a name for the run, usable wherever a run is named",
                   &options->names,
                   {},
                   "NAME"},
                  {"--build", "mark it as a stage that prepares the environment", &options->build},
                  {"--keep",
                   "files to keep that the filter would leave out",
                   &options->choices,
                   {},
                   "PATTERN"},
                  {"--leave-out",
                   "files to leave out that the filter would keep",
                   &options->choices,
                   {},
                   "PATTERN"},
                  {"--explain", "say of every file why it was kept or left out", &options->explain},
                  {"--no-wait",
                   "do not wait for what the command leaves running: it is recorded in the "
                   "background",
                   &options->no_wait},
                  {"--set", "with @N: the value of an argument in the new run", &options->sets}},
      .wrapped = {"COMMAND", "the command and its arguments, or @N for stage N", &options->words,
               &options->stage},
      .action = [&session, options] { return run(session, *options); }};
  add_limit_options(options->gpu, verb.options);
  return verb;
}

}  // namespace assay::cli
