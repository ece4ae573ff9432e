#include "assay/data/actions.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <span>

#include "base/decimal.h"
#include "base/progress.h"
#include "base/text.h"
#include "base/units.h"
#include "train/data/bpe_tokenizer.h"
#include "train/data/documents/input_files.h"
#include "train/data/synth.h"
#include "train/data/token_set.h"
#include "train/data/tokenize.h"

namespace assay::cli {
namespace {

using base::ExitCode;
using base::Result;

constexpr std::uint64_t kMostThreads = 1024;

// A token by its id, or an added token by its text.
Result<std::optional<data::TokenId>> token_named(const std::string& option, const std::string& name,
                                                 const data::Tokenizer& tokenizer) {
  for (const auto& [text, id] : tokenizer.added()) {
    if (text == name) return id;
  }
  auto id = count_of(option, name);
  if (!id && name.starts_with('<')) {
    return base::fail(base::usage_error(option, fmt::format("the tokenizer has no '{}'", name),
                                        "give the token's id"));
  }
  if (!id) return base::fail(std::move(id).error());
  if (*id >= data::kMostTokens) {
    return base::fail(base::usage_error(option, fmt::format("{} is not a token id", *id),
                                        fmt::format("ids are below {}", data::kMostTokens)));
  }
  return static_cast<data::TokenId>(*id);
}

// The token that begins a document in well-known vocabularies; some use one token for the beginning
// and for the separator of documents.
Result<std::optional<data::TokenId>> bos_token(const std::string& name,
                                               const data::Tokenizer& tokenizer) {
  if (name == "none") return std::nullopt;
  if (name != "auto") return token_named("--bos", name, tokenizer);
  for (const char* known : {"<|begin_of_text|>", "<|bos|>", "<s>", "<bos>", "<|endoftext|>"}) {
    for (const auto& [text, id] : tokenizer.added()) {
      if (text == known) return id;
    }
  }
  return std::nullopt;
}

Result<void> require_output(const std::string& verb, const std::string& output) {
  if (!output.empty()) return {};
  return base::fail(base::usage_error(verb, "-o is missing", "add -o NAME.tokens"));
}

base::Json shard_json(const std::string& file, const data::ShardHeader& shard) {
  return {{"file", file},
          {"dtype", data::name_of(shard.type)},
          {"vocabulary", shard.vocabulary},
          {"tokens", shard.count},
          {"blake3", shard.digest.hex()}};
}

std::string shard_text(const std::string& file, const data::ShardHeader& shard) {
  return fmt::format("{}: {} tokens of {}, vocabulary {}", file,
                     base::grouped(static_cast<std::int64_t>(shard.count)),
                     data::name_of(shard.type),
                     base::grouped(static_cast<std::int64_t>(shard.vocabulary)));
}

Result<data::TokenSource> source_of(const DataOptions& options) {
  data::TokenSource source{.paths = options.files};
  if (!options.dtype.empty()) {
    auto type = data::parse_token_type(options.dtype);
    if (!type) type.error().where = "--dtype";
    ASSAY_TRY(source.headerless, std::move(type));
  }
  if (!options.vocabulary.empty()) {
    if (!source.headerless) {
      return base::fail(base::usage_error("--vocab", "is for files without a header",
                                          "add --dtype, or leave --vocab out"));
    }
    ASSAY_TRY(source.vocabulary, count_of("--vocab", options.vocabulary));
  }
  return source;
}

}  // namespace

Result<std::uint64_t> count_of(const std::string& option, const std::string& text) {
  const bool number = !text.empty() && base::decimal_size(text) == text.size();
  const auto count =
      number ? base::decimal_times(text, 1) : tl::unexpected(base::DecimalError::kNotWhole);
  if (count) return static_cast<std::uint64_t>(*count);
  const bool large = number && count.error() == base::DecimalError::kTooLarge;
  const std::string what =
      large ? fmt::format("'{}' is not a whole number from 0 to {}", text,
                          base::grouped(std::numeric_limits<std::int64_t>::max()))
            : fmt::format("'{}' is not a whole number", text);
  return base::fail(
      base::usage_error(option, text.empty() ? "is missing" : what, "for example 1000000 or 1e6"));
}

void add_json(const data::RowsWithout& without, base::Json& json) {
  json["rows_without_text"] = without.null;
  json["bad_rows_skipped"] = without.bad;
}

Result<ExitCode> data_tokenize(const Session& session, const DataOptions& options) {
  ASSAY_TRY_VOID(require_output("data tokenize", options.output));
  std::optional<data::DocumentFormat> format;
  if (!options.format.empty()) {
    ASSAY_TRY(format, data::parse_document_format(options.format));
  }
  ASSAY_TRY(const std::uint64_t jobs, count_of("--jobs", options.jobs));
  ASSAY_TRY(const auto tokenizer, data::load_tokenizer(options.tokenizer));
  ASSAY_TRY(data::InputFiles inputs, data::input_files(options.files, format));
  ASSAY_TRY_VOID(data::check_column("--column", inputs, options.column));
  data::TokenizeRequest request{
      .files = std::move(inputs.files),
      .output = options.output,
      .rules = {.column = options.column, .skip_bad_rows = options.skip_bad_rows},
      .threads = static_cast<unsigned>(std::min<std::uint64_t>(jobs, kMostThreads))};
  ASSAY_TRY(request.rules.bos, bos_token(options.bos, *tokenizer));
  if (!options.eos.empty()) {
    ASSAY_TRY(request.rules.eos, token_named("--append-eos", options.eos, *tokenizer));
  }
  base::Progress progress({.label = "tokenizing",
                           .total = data::total_bytes(request.files),
                           .unit = base::ProgressUnit::kBytes,
                           .quiet = session.quiet});
  request.progress = [&progress](std::int64_t bytes) { progress.advance(bytes); };
  ASSAY_TRY(const data::TokenizeSummary made, data::tokenize_files(*tokenizer, request));
  progress.finish();
  base::Json json = shard_json(options.output, made.shard);
  json["documents"] = made.documents;
  json["files"] = request.files.size();
  json["files_left_out"] = inputs.left_out;
  json["text_bytes"] = made.bytes;
  json["tokens_resumed"] = base::or_null(made.resumed_at);
  add_json(made.rows_without, json);
  session.print_json(json);
  std::string text = fmt::format("{}; from {} {}, {}", shard_text(options.output, made.shard),
                                 base::grouped(static_cast<std::int64_t>(made.documents)),
                                 made.documents == 1 ? "document" : "documents",
                                 base::to_text(base::Bytes(static_cast<std::int64_t>(made.bytes))));
  if (request.rules.bos) {
    const auto spelled = tokenizer->decode(std::span(&*request.rules.bos, 1));
    text += fmt::format("; {} before each", spelled.value_or(options.bos));
  }
  if (made.resumed_at) {
    text += fmt::format("; {} of the tokens are from an interrupted run",
                        base::grouped(static_cast<std::int64_t>(*made.resumed_at)));
  }
  text += made.rows_without.text();
  if (inputs.left_out > 0) {
    text += fmt::format("; {} other files skipped", inputs.left_out);
  }
  session.print(text + "\n");
  session.next(fmt::format("assay data info {}", base::shell_quoted(options.output)));
  return ExitCode::kYes;
}

Result<ExitCode> data_synth(const Session& session, const DataOptions& options) {
  ASSAY_TRY_VOID(require_output("data synth", options.output));
  data::SynthRequest request{.output = options.output};
  ASSAY_TRY(request.tokens, count_of("--tokens", options.tokens));
  if (request.tokens == 0) {
    return base::fail(base::usage_error("--tokens", "'0' is not a whole number of at least 1",
                                        "for example 1000000 or 1e6"));
  }
  ASSAY_TRY(request.vocabulary, count_of("--vocab", options.vocabulary));
  ASSAY_TRY(request.seed, count_of("--seed", options.seed));
  ASSAY_TRY(request.kind, data::parse_synth_kind(options.kind));
  base::Progress progress({.label = "generating tokens",
                           .total = static_cast<std::int64_t>(request.tokens),
                           .quiet = session.quiet});
  request.progress = [&progress](std::int64_t tokens) { progress.advance(tokens); };
  ASSAY_TRY(const data::ShardHeader made, data::synthesize(request));
  progress.finish();
  base::Json json = shard_json(options.output, made);
  json["kind"] = options.kind;
  json["seed"] = request.seed;
  session.print_json(json);
  session.print(fmt::format("{}; {}, seed {}\n", shard_text(options.output, made), options.kind,
                            request.seed));
  session.next(fmt::format("assay data info {}", base::shell_quoted(options.output)));
  return ExitCode::kYes;
}

// Shows all shards; then fails with the first that does not verify.
Result<ExitCode> data_info(const Session& session, const DataOptions& options) {
  ASSAY_TRY(const data::TokenSource source, source_of(options));
  ASSAY_TRY(const std::vector<std::string> paths, data::shard_paths(source));
  base::Json list = base::Json::array();
  base::Table table({"file", "dtype", "vocabulary", "tokens", "documents", "tokenizer", "hash ok"});
  std::optional<base::Error> wrong;
  std::uint64_t tokens = 0;
  for (const std::string& path : paths) {
    ASSAY_TRY(const data::Shard shard, data::open_shard(path, source));
    const auto vocabulary = shard.vocabulary();
    base::Json ok;  // null: not checked
    if (options.verify) {
      const auto verified = shard.verify();
      if (!verified && !wrong) wrong = verified.error();
      ok = verified.has_value();
    }
    tokens += shard.count();
    const auto& documents = shard.documents_header();
    const std::string identity =
        documents && documents->definition_bytes > 0 ? documents->tokenizer.hex() : "";
    list.push_back({{"file", path},
                    {"dtype", data::name_of(shard.type())},
                    {"vocabulary", base::or_null(vocabulary)},
                    {"tokens", shard.count()},
                    {"blake3", shard.digest() ? base::Json(shard.digest()->hex()) : base::Json()},
                    {"documents", documents ? base::Json(documents->count) : base::Json()},
                    {"tokenizer", base::or_null(identity)},
                    {"bos", documents ? base::or_null(documents->bos) : base::Json()},
                    {"eos", documents ? base::or_null(documents->eos) : base::Json()},
                    {"ok", ok}});
    const std::string checked = !shard.digest() ? "no hash" : ok == true ? "yes" : "no";
    table.row({path, std::string(data::name_of(shard.type())),
               vocabulary ? base::grouped(static_cast<std::int64_t>(*vocabulary)) : "—",
               base::grouped(static_cast<std::int64_t>(shard.count())),
               documents ? base::grouped(static_cast<std::int64_t>(documents->count)) : "—",
               identity.empty() ? "—" : identity.substr(0, 8),
               options.verify ? checked : "not checked"});
  }
  session.print_json(base::Json{{"tokens", tokens}, {"shards", std::move(list)}});
  session.print(table);
  if (wrong) return base::fail(*wrong);
  return ExitCode::kYes;
}

}  // namespace assay::cli
