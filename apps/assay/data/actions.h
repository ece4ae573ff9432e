// The actions of `assay data`; data.cc describes the options.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "cli/verb.h"
#include "train/data/load_tokenizer.h"

namespace assay::cli {

struct DataOptions {
  std::vector<std::string> files;
  std::string output, bos = "auto", eos, tokens, vocabulary, dtype;
  std::string format, column = "text", jobs = "0";
  std::string seed = "0";
  std::string kind = "markov";
  data::TokenizerChoice tokenizer;
  bool verify = false;
};

base::Result<base::ExitCode> data_tokenize(const Session& session, const DataOptions& options);
base::Result<base::ExitCode> data_synth(const Session& session, const DataOptions& options);
base::Result<base::ExitCode> data_info(const Session& session, const DataOptions& options);

}  // namespace assay::cli
