// The words of `train` and `generate`. Two programs take them: `assay`, which checks them and runs
// the trainer as an observed job, and `assay-train`, which trains.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/verb.h"

namespace assay::cli {

struct TrainWords {
  std::string job = "demo";
  std::vector<std::string> sets;
  std::string out;
  bool resume = false;
  std::string stop_after;
  std::string device = "auto";

  // As they would be typed again.
  [[nodiscard]] std::vector<std::string> typed() const;
};
using TrainAction = std::function<base::Result<base::ExitCode>(const TrainWords&)>;
Verb describe_train(TrainAction action);

struct GenerateWords {
  std::string checkpoint;
  std::string prompt;
  std::string tokens = "200";
  std::string temperature = "0.8";
  std::string seed = "1";
  std::string tokenizer = "bytes";

  [[nodiscard]] std::vector<std::string> typed() const;
};
using GenerateAction = std::function<base::Result<base::ExitCode>(const GenerateWords&)>;
Verb describe_generate(GenerateAction action);

}  // namespace assay::cli
