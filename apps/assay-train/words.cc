#include "assay-train/words.h"

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

std::vector<std::string> TrainWords::typed() const {
  std::vector<std::string> words = {job};
  for (const std::string& set : sets) {
    words.emplace_back("--set");
    words.push_back(set);
  }
  if (!out.empty()) words.insert(words.end(), {"--out", out});
  if (resume) words.emplace_back("--resume");
  if (!stop_after.empty()) words.insert(words.end(), {"--stop-after", stop_after});
  if (device != "auto") words.insert(words.end(), {"--device", device});
  return words;
}

Verb describe_train(TrainAction action) {
  const auto words = std::make_shared<TrainWords>();
  return {.name = "train",
          .description =
              "train a model, as an observed job; without a job, a small one on this "
              "machine",
          .examples = {"assay train demo --set train.steps=2 --out demo-run"},
          .arguments = {{"JOB", "a preset or a job file", &words->job, false, job_names, true}},
          .options = {{"--set", "write a key over the job's", &words->sets},
                      {"--out",
                       "where checkpoints and metrics go; default: runs/JOB",
                       &words->out,
                       {},
                       "DIR",
                       true},
                      {"--resume", "go on from the newest whole checkpoint in DIR", &words->resume},
                      {"--stop-after",
                       "save and end after this step of the same schedule",
                       &words->stop_after,
                       {},
                       "STEP"},
                      {"--device", "cpu, cuda, or auto: a GPU if there is one", &words->device,
                       device_names, "DEVICE"}},
          .action = [words, action = std::move(action)] { return action(*words); }};
}

std::vector<std::string> GenerateWords::typed() const {
  return {checkpoint,  "--prompt", prompt, "--tokens",    tokens,   "--temperature",
          temperature, "--seed",   seed,   "--tokenizer", tokenizer};
}

Verb describe_generate(GenerateAction action) {
  const auto words = std::make_shared<GenerateWords>();
  return {
      .name = "generate",
      .description = "let a trained model go on with a text",
      .examples = {"assay generate demo-run --prompt Hello --tokens 20"},
      .arguments = {{"CHECKPOINT",
                     "a checkpoint's folder, or a run's: its newest",
                     &words->checkpoint,
                     true,
                     {},
                     true}},
      .options =
          {{"--prompt", "the text to go on with", &words->prompt, {}, "TEXT"},
           {"--tokens", "how many tokens to add", &words->tokens, {}, "N"},
           {"--temperature", "0: always the likeliest", &words->temperature, {}, "T"},
           {"--seed", "of the choice between tokens", &words->seed, {}, "N"},
           {"--tokenizer", "bytes, or a vocabulary's file", &words->tokenizer, {}, "NAME", true}},
      .action = [words, action = std::move(action)] { return action(*words); }};
}

}  // namespace assay::cli
