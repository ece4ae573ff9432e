#include "assay-train/options.h"

#include <memory>

#include "spec/presets.h"

namespace assay::cli {
namespace {

std::vector<std::string> job_names() {
  return spec::preset_names(spec::Kind::kJob);
}

std::vector<std::string> device_names() {
  return {"auto", "cpu", "cuda"};
}

}  // namespace

std::vector<std::string> TrainOptions::arguments() const {
  std::vector<std::string> list = {job};
  for (const std::string& set : sets) {
    list.emplace_back("--set");
    list.push_back(set);
  }
  if (!out.empty()) list.insert(list.end(), {"--out", out});
  if (resume) list.emplace_back("--resume");
  if (resume_or_start) list.emplace_back("--resume-or-start");
  if (new_data) list.emplace_back("--new-data");
  if (new_optimizer) list.emplace_back("--new-optimizer");
  if (!from.empty()) list.insert(list.end(), {"--from", from});
  if (!stop_after.empty()) list.insert(list.end(), {"--stop-after", stop_after});
  if (device != "auto") list.insert(list.end(), {"--device", device});
  return list;
}

Verb describe_train(TrainAction action) {
  const auto options = std::make_shared<TrainOptions>();
  return {.name = "train",
          .description =
              "train a model as a recorded run; without a job file, a small demo on this "
              "machine",
          .examples = {"assay train demo --set train.steps=2 --out demo-run"},
          .arguments = {{"JOB", "a preset or a job file", &options->job, false, job_names, true}},
          .options = {{"--set", "override a key of the job", &options->sets},
                      {"--out",
                       "folder for checkpoints and metrics; default: runs/JOB",
                       &options->out,
                       {},
                       "DIR",
                       true},
                      {"--resume", "continue from the newest intact checkpoint in DIR",
                       &options->resume},
                      {"--resume-or-start",
                       "like --resume, but start at step 1 if there is no checkpoint: for jobs "
                       "that are restarted",
                       &options->resume_or_start},
                      {"--new-data", "with --resume: go on with other data, from its beginning",
                       &options->new_data},
                      {"--new-optimizer",
                       "with --resume: go on with another optimizer, its moments at zero",
                       &options->new_optimizer},
                      {"--from",
                       "start a new run at step 1 with the weights of a checkpoint, or of a run's "
                       "newest",
                       &options->from,
                       {},
                       "CHECKPOINT",
                       true},
                      {"--stop-after",
                       "save and stop after this step; the learning-rate schedule does not change",
                       &options->stop_after,
                       {},
                       "STEP"},
                      {"--device", "cpu, cuda, or auto: what the job is for, a GPU or CPUs",
                       &options->device, device_names, "DEVICE"}},
          .action = [options, action = std::move(action)] { return action(*options); }};
}

Verb describe_tune(TuneAction action) {
  const auto options = std::make_shared<TuneOptions>();
  return {.name = "tune",
          .description =
              "find the fastest algorithm for each matrix product of a job on this GPU, more "
              "thoroughly than at startup",
          .arguments = {{"JOB", "a preset or a job file", &options->job, true, job_names, true}},
          .options = {{"--set", "override a key of the job", &options->sets},
                      {"--out",
                       "file to add them to; default: the cache that `assay train` uses",
                       &options->out,
                       {},
                       "FILE",
                       true}},
          .action = [options, action = std::move(action)] { return action(*options); }};
}

std::vector<std::string> GenerateOptions::arguments() const {
  std::vector<std::string> list = {checkpoint, "--prompt",      prompt,      "--tokens",
                                   tokens,     "--temperature", temperature, "--top-p",
                                   top_p,      "--seed",        seed};
  if (!tokenizer.empty()) list.insert(list.end(), {"--tokenizer", tokenizer});
  return list;
}

Verb describe_generate(GenerateAction action) {
  const auto options = std::make_shared<GenerateOptions>();
  return {.name = "generate",
          .description = "continue a text with a trained model",
          .examples = {"assay generate demo-run --prompt Hello --tokens 20"},
          .arguments = {{"CHECKPOINT",
                         "a checkpoint folder, or a run folder: its newest intact checkpoint",
                         &options->checkpoint,
                         true,
                         {},
                         true}},
          .options = {{"--prompt", "the text to continue", &options->prompt, {}, "TEXT"},
                      {"--tokens", "number of tokens to generate", &options->tokens, {}, "N"},
                      {"--temperature",
                       "sampling temperature; 0: always the most likely token",
                       &options->temperature,
                       {},
                       "T"},
                      {"--top-p",
                       "sample from the most likely tokens that together have this probability",
                       &options->top_p,
                       {},
                       "P"},
                      {"--seed", "seed of the sampling", &options->seed, {}, "N"},
                      {"--tokenizer",
                       "bytes, or a vocabulary file, for a checkpoint without a tokenizer",
                       &options->tokenizer,
                       {},
                       "NAME",
                       true}},
          .action = [options, action = std::move(action)] { return action(*options); }};
}

std::vector<std::string> ScoreOptions::arguments() const {
  std::vector<std::string> list = {checkpoint};
  list.insert(list.end(), files.begin(), files.end());
  list.insert(list.end(), {"--column", column});
  if (skip_bad_rows) list.emplace_back("--skip-bad-rows");
  if (!tokens.empty()) list.insert(list.end(), {"--tokens", tokens});
  if (!tokenizer.empty()) list.insert(list.end(), {"--tokenizer", tokenizer});
  return list;
}

Verb describe_score(ScoreAction action) {
  const auto options = std::make_shared<ScoreOptions>();
  return {
      .name = "score",
      .description = "evaluate a trained model on text: loss, perplexity, bits per byte",
      .examples = {"assay score demo-run a.txt", "assay score demo-run a.txt --tokens 100 --json"},
      .arguments = {{"CHECKPOINT",
                     "a checkpoint folder, or a run folder: its newest intact checkpoint",
                     &options->checkpoint,
                     true,
                     {},
                     true},
                    {.name = "FILE",
                     .help = "documents as for `assay data tokenize`, or one token shard",
                     .required = true,
                     .files = true,
                     .values = &options->files}},
      .options =
          {{"--tokens",
            "score at most this many tokens, from the beginning; default: all",
            &options->tokens,
            {},
            "N"},
           {"--column",
            "the key of JSON lines with the text; default: text",
            &options->column,
            {},
            "KEY"},
           {"--skip-bad-rows",
            "skip and count rows that are not valid JSON or have no text; default: the first "
            "one is an error",
            &options->skip_bad_rows},
           {"--tokenizer",
            "bytes, or a vocabulary file, for a checkpoint without a tokenizer",
            &options->tokenizer,
            {},
            "NAME",
            true}},
      .action = [options, action = std::move(action)] { return action(*options); }};
}

}  // namespace assay::cli
