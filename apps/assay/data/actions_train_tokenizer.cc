// assay data train-tokenizer: a byte-pair vocabulary of documents, as the files that tiktoken and
// Hugging Face's tokenizers read.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "assay/data/actions.h"
#include "base/file.h"
#include "base/progress.h"
#include "base/text.h"
#include "base/units.h"
#include "hash/blake3.h"
#include "train/data/count_words.h"
#include "train/data/load_tokenizer.h"
#include "train/data/tiktoken.h"
#include "train/data/tokenizer_json.h"
#include "train/data/train_bpe.h"
#include "train/data/word_splitter.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;
using base::ExitCode;
using base::Result;

constexpr std::uint64_t kBytes = 256;
constexpr std::uint64_t kMostVocabulary = 1'000'000;

Result<void> check_output(const std::string& output) {
  if (output.empty()) {
    return base::fail(
        base::usage_error("data train-tokenizer", "-o is missing", "add -o NAME.json"));
  }
  if (output.ends_with(".json")) return {};
  return base::fail(base::usage_error(output, "does not end in .json",
                                      "NAME.json and NAME.tiktoken will be written"));
}

Result<std::uint64_t> vocabulary_of(const DataOptions& options, std::size_t special) {
  const std::string text = options.vocabulary.empty() ? "32768" : options.vocabulary;
  ASSAY_TRY(const std::uint64_t vocabulary, count_of("--vocab", text));
  if (vocabulary < kBytes + special || vocabulary > kMostVocabulary) {
    return base::fail(base::usage_error(
        "--vocab",
        fmt::format("{} is not between {} and {}", vocabulary, kBytes + special, kMostVocabulary)));
  }
  return vocabulary;
}

// "TEXT=ID": the ids after the ordinary tokens.
std::vector<std::string> numbered(const std::vector<std::string>& special, std::size_t first) {
  std::vector<std::string> list;
  for (const std::string& text : special) list.push_back(fmt::format("{}={}", text, first++));
  return list;
}

}  // namespace

Result<ExitCode> data_train_tokenizer(const Session& session, const DataOptions& options) {
  ASSAY_TRY_VOID(check_output(options.output));
  const std::string pattern_name =
      options.tokenizer.pattern.empty() ? "llama3" : options.tokenizer.pattern;
  ASSAY_TRY(const std::string pattern, data::split_pattern(pattern_name));
  ASSAY_TRY(const data::WordSplitter splitter,
            data::WordSplitter::compile(pattern, "--pattern " + pattern_name));
  std::vector<std::string> special = options.tokenizer.special;
  if (special.empty()) special = {"<|bos|>"};
  ASSAY_TRY(const std::uint64_t vocabulary, vocabulary_of(options, special.size()));
  std::optional<data::DocumentFormat> format;
  if (!options.format.empty()) {
    ASSAY_TRY(format, data::parse_document_format(options.format));
  }
  ASSAY_TRY(const std::uint64_t jobs, count_of("--jobs", options.jobs));
  ASSAY_TRY(data::InputFiles inputs, data::input_files(options.files, format));
  ASSAY_TRY_VOID(data::check_column("--column", inputs, options.column));

  data::CountWordsRequest request{
      .files = std::move(inputs.files),
      .column = options.column,
      .skip_bad_rows = options.skip_bad_rows,
      .threads = static_cast<unsigned>(std::min<std::uint64_t>(jobs, 1024))};
  base::Progress reading({.label = "counting words",
                          .total = data::total_bytes(request.files),
                          .unit = base::ProgressUnit::kBytes,
                          .quiet = session.quiet});
  request.progress = [&](std::int64_t bytes) { reading.advance(bytes); };
  ASSAY_TRY(const data::CountedWords counted, data::count_words(splitter, request));
  reading.finish();

  const std::size_t wanted = vocabulary - special.size();
  base::Progress merging({.label = "merging",
                          .total = static_cast<std::int64_t>(wanted - kBytes),
                          .quiet = session.quiet});
  const std::vector<std::string> tokens =
      data::train_bpe(counted.words, wanted, [&](std::int64_t count) { merging.advance(count); });
  merging.finish();

  // The vocabulary as it will be read again: both files give the same tokens.
  const std::string tiktoken = data::tiktoken_text(tokens);
  ASSAY_TRY(const data::BpeVocabulary made,
            data::read_tiktoken(tiktoken, "the vocabulary", numbered(special, tokens.size())));
  const std::string json_file = data::tokenizer_json_text(made, pattern);
  const fs::path beside = fs::path(options.output).replace_extension(".tiktoken");
  ASSAY_TRY_VOID(base::replace_file(beside, tiktoken, 0666));
  ASSAY_TRY_VOID(base::replace_file(options.output, json_file, 0666));

  const std::string identity = hash::blake3(std::as_bytes(std::span(json_file))).hex();
  base::Json json{{"tokenizer", options.output},   {"tiktoken", beside.string()},
                  {"identity", identity},          {"vocabulary", tokens.size() + special.size()},
                  {"words", counted.words.size()}, {"documents", counted.documents},
                  {"text_bytes", counted.bytes}};
  add_json(counted.rows_without, json);
  session.print_json(json);
  session.print(fmt::format(
      "{} and {}: {} tokens, {} of them special; from {} different words, {}{}\n", options.output,
      beside.string(), base::grouped(static_cast<std::int64_t>(tokens.size() + special.size())),
      special.size(), base::grouped(static_cast<std::int64_t>(counted.words.size())),
      base::to_text(base::Bytes(static_cast<std::int64_t>(counted.bytes))),
      counted.rows_without.text()));
  if (tokens.size() < wanted) {
    session.print(
        fmt::format("the documents have no more pairs to merge: the vocabulary is {} tokens "
                    "smaller than requested\n",
                    wanted - tokens.size()));
  }
  session.next(fmt::format("assay data tokenize … -o NAME.tokens --tokenizer {}",
                           base::shell_quoted(options.output)));
  return ExitCode::kYes;
}

}  // namespace assay::cli
