// assay-train train: the job, its data, a device, a plan; then the trainer.
#include <fmt/format.h>
#include <signal.h>

#include <atomic>
#include <charconv>
#include <filesystem>

#include "assay-train/device.h"
#include "assay-train/report.h"
#include "assay-train/verbs.h"
#include "base/error.h"
#include "base/table.h"
#include "base/text.h"
#include "base/units.h"
#include "spec/enum_names.h"
#include "spec/load.h"
#include "train/builtin_text.h"
#include "train/trainer.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

std::atomic<bool> stop_asked = false;

void on_signal(int signal) {
  // The second one is meant.
  if (stop_asked.exchange(true) && signal == SIGINT) ::_exit(128 + SIGINT);
}

void listen_to_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGTERM, SIGUSR1, SIGINT}) ::sigaction(signal, &action, nullptr);
}

base::Result<std::optional<std::int64_t>> parse_stop(const std::string& text) {
  if (text.empty()) return std::nullopt;
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), step);
  if (error != std::errc{} || end != text.data() + text.size() || step < 1) {
    return base::fail(base::usage_error("train --stop-after",
                                        fmt::format("expected a step from 1 on, got '{}'", text)));
  }
  return step;
}

base::Result<spec::JobSpec> load_job(const TrainWords& words, std::string& name) {
  ASSAY_TRY(spec::Loaded loaded, spec::load(words.job, {.overrides = words.sets}));
  auto* job = std::get_if<spec::JobSpec>(&loaded.spec);
  if (job == nullptr) {
    return base::fail(
        base::usage_error(words.job, "is no job", "a job has a [model] and a [batch] or [train]"));
  }
  name = loaded.name;
  if (job->layout.ranks.value_or(1) != 1) {
    return base::fail(base::usage_error(words.job, "asks for more than one rank",
                                        "set layout.ranks=1 and a cluster of one device"));
  }
  return std::move(*job);
}

base::Result<void> make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return base::fail(base::unfit_error(folder, "cannot be made: " + error.message()));
  if (::access(folder.c_str(), W_OK) != 0) {
    return base::fail(base::unfit_error(folder, "cannot be written to", "name another with --out"));
  }
  return {};
}

base::Result<data::TokenSet> open_data(const spec::JobSpec& job, const fs::path& out) {
  data::TokenSource source;
  source.vocabulary = static_cast<std::uint64_t>(job.model.vocab);
  if (job.data.type) {
    source.headerless =
        *job.data.type == spec::TokenType::kU16 ? data::TokenType::kU16 : data::TokenType::kU32;
  } else {
    source.vocabulary.reset();
  }
  if (job.data.train) {
    source.paths = {*job.data.train};
  } else {
    const fs::path text = out / "built-in.tokens";
    std::error_code ignored;
    if (!fs::exists(text, ignored)) ASSAY_TRY_VOID(train::write_builtin_text(text));
    source.paths = {text.string()};
  }
  ASSAY_TRY(data::TokenSet set,
            data::TokenSet::open(source, static_cast<std::uint64_t>(job.batch.sequence)));
  if (set.vocabulary() && *set.vocabulary() > static_cast<std::uint64_t>(job.model.vocab)) {
    return base::fail(
        base::usage_error(source.paths.front(),
                          fmt::format("has a vocabulary of {}, but the model knows {} tokens",
                                      *set.vocabulary(), job.model.vocab),
                          "set model.vocab, or use data made with the model's tokenizer"));
  }
  return set;
}

void print_plan(const Session& session, const train::Planned& planned, const Device& device) {
  base::Table table({"memory", "bytes"});
  const auto row = [&](const char* name, std::int64_t bytes) {
    if (bytes > 0) table.row({name, base::to_text(base::Bytes(bytes))});
  };
  const step::MemoryPlan& plan = planned.plan;
  row("parameters", plan.of(step::Storage::kWeights));
  row("their low halves", plan.of(step::Storage::kRemainders));
  row("gradients", plan.of(step::Storage::kGradients));
  row("optimizer", plan.of(step::Storage::kMoments));
  row("activations", plan.of(step::Storage::kActivations));
  row("workspace",
      planned.extra_bytes + plan.of(step::Storage::kInputs) + plan.of(step::Storage::kScalars));
  table.rule();
  row("planned", plan.bytes + planned.extra_bytes);
  row("available", device.available_bytes);
  session.print(fmt::format("{}, recompute {}, {} ops, {} tokens per step\n\n",
                            device.backend->description(),
                            spec::to_text(planned.program.choices.recompute),
                            base::grouped(static_cast<std::int64_t>(planned.program.ops.size())),
                            base::grouped(planned.program.step_tokens())));
  session.print(table);
  session.print("\n");
}

std::string_view ending_text(train::Ending ending) {
  switch (ending) {
    case train::Ending::kFinished:
      return "finished";
    case train::Ending::kStopAfter:
      return "stopped where asked";
    case train::Ending::kStopped:
      return "stopped by a signal";
    case train::Ending::kNotFinite:
      break;
  }
  return "stopped: gradients not finite";
}

}  // namespace

base::Result<base::ExitCode> train_model(const Session& session, const TrainWords& words) {
  std::string name;
  ASSAY_TRY(spec::JobSpec job, load_job(words, name));
  ASSAY_TRY(const auto stop_after, parse_stop(words.stop_after));
  const fs::path out = words.out.empty() ? fs::path("runs") / name : fs::path(words.out);
  ASSAY_TRY(Device device, choose_device(words.device, job));
  ASSAY_TRY_VOID(make_folder(out));
  ASSAY_TRY(const data::TokenSet set, open_data(job, out));
  const data::BatchReader reader(set, static_cast<std::uint64_t>(job.train.seed),
                                 static_cast<std::int32_t>(job.model.vocab));
  ASSAY_TRY(const train::Planned planned,
            train::plan_step(job, step::choices_of(job),
                             train::room_on(*device.backend, device.available_bytes)));
  print_plan(session, planned, device);
  ASSAY_TRY_VOID(device.backend->prepare(planned.program, planned.plan));
  listen_to_signals();
  ASSAY_TRY(const auto report,
            RunReport::open(session, job, out, planned.plan.bytes + planned.extra_bytes));
  const train::RunOptions options{
      .out = out, .resume = words.resume, .stop_after = stop_after, .stop = &stop_asked};
  ASSAY_TRY(const train::RunResult result,
            train::train(job, planned, *device.backend, reader, options, *report));
  session.print_json(base::Json{{"ending", ending_text(result.ending)},
                                {"step", result.step},
                                {"loss", result.loss},
                                {"checkpoint", result.checkpoint.string()}});
  session.print(fmt::format("{} after step {}, loss {:.4f}\n", ending_text(result.ending),
                            result.step, result.loss));
  session.next(fmt::format("assay generate {} --prompt \"…\"", result.checkpoint.string()));
  return result.ending == train::Ending::kNotFinite ? base::ExitCode::kNo : base::ExitCode::kYes;
}

}  // namespace assay::cli
