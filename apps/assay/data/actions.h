// The actions of `assay data`; data.cc describes the options.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/result.h"
#include "cli/verb.h"
#include "train/data/documents/json_line.h"
#include "train/data/load_tokenizer.h"

namespace assay::cli {

// A whole number, "1000000" or "1e6". Errors name the option.
base::Result<std::uint64_t> count_of(const std::string& option, const std::string& text);

struct DataOptions {
  std::vector<std::string> files;
  std::string output, bos = "auto", eos, tokens, vocabulary, dtype;
  std::string format, column = "text", jobs = "0";
  std::string seed = "0";
  std::string kind = "markov";
  data::TokenizerChoice tokenizer;
  bool verify = false;
  bool skip_bad_rows = false;
};

base::Result<base::ExitCode> data_tokenize(const Session& session, const DataOptions& options);
base::Result<base::ExitCode> data_train_tokenizer(const Session& session,
                                                  const DataOptions& options);
base::Result<base::ExitCode> data_synth(const Session& session, const DataOptions& options);
base::Result<base::ExitCode> data_info(const Session& session, const DataOptions& options);

// For --json.
void add_json(const data::RowsWithout& without, base::Json& json);

}  // namespace assay::cli
