// The command-line options of `train`, `generate` and `score`. Two programs parse them: `assay`,
// which checks them and runs the trainer as a recorded run, and `assay-train`, which trains.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/verb.h"

namespace assay::cli {

struct TrainOptions {
  std::string job = "demo";
  std::vector<std::string> sets;
  std::string out;
  bool resume = false;
  bool resume_or_start = false;
  bool new_data = false;
  bool new_optimizer = false;
  std::string from;
  std::string stop_after;
  std::string device = "auto";

  // Back to command-line arguments.
  [[nodiscard]] std::vector<std::string> arguments() const;
};
using TrainAction = std::function<base::Result<base::ExitCode>(const TrainOptions&)>;
Verb describe_train(TrainAction action);

struct GenerateOptions {
  std::string checkpoint;
  std::string prompt;
  std::string tokens = "200";
  std::string temperature = "0.8";
  std::string top_p = "1";
  std::string seed = "1";
  std::string tokenizer;  // empty: the checkpoint's

  [[nodiscard]] std::vector<std::string> arguments() const;
};
using GenerateAction = std::function<base::Result<base::ExitCode>(const GenerateOptions&)>;
Verb describe_generate(GenerateAction action);

struct ScoreOptions {
  std::string checkpoint;
  std::vector<std::string> files;
  std::string tokens;
  std::string column = "text";
  bool skip_bad_rows = false;
  std::string tokenizer;  // empty: the checkpoint's

  [[nodiscard]] std::vector<std::string> arguments() const;
};
using ScoreAction = std::function<base::Result<base::ExitCode>(const ScoreOptions&)>;
Verb describe_score(ScoreAction action);

// Only of `assay-train`.
struct TuneOptions {
  std::string job;
  std::vector<std::string> sets;
  std::string out;
};
using TuneAction = std::function<base::Result<base::ExitCode>(const TuneOptions&)>;
Verb describe_tune(TuneAction action);

}  // namespace assay::cli
