#include "assay/data/actions.h"

#include <fmt/format.h>

#include <optional>

#include "base/decimal.h"
#include "base/progress.h"
#include "base/text.h"
#include "base/units.h"
#include "train/data/bpe_tokenizer.h"
#include "train/data/synth.h"
#include "train/data/token_set.h"
#include "train/data/tokenize.h"

namespace assay::cli {
namespace {

using base::ExitCode;
using base::Result;

// "1000000" or "1e6".
Result<std::uint64_t> count_of(const std::string& option, const std::string& text) {
  const bool number = !text.empty() && base::decimal_size(text) == text.size();
  const auto count =
      number ? base::decimal_times(text, 1) : tl::unexpected(base::DecimalError::kNotWhole);
  if (count) return static_cast<std::uint64_t>(*count);
  return base::fail(base::usage_error(
      option, text.empty() ? "is missing" : fmt::format("'{}' is not a whole number", text),
      "for example 1000000 or 1e6"));
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

Result<ExitCode> data_tokenize(const Session& session, const DataOptions& options) {
  ASSAY_TRY_VOID(require_output("data tokenize", options.output));
  data::TokenizeRequest request{.files = options.files, .output = options.output};
  if (!options.eos.empty()) {
    ASSAY_TRY(const std::uint64_t eos, count_of("--append-eos", options.eos));
    if (eos >= data::kMostTokens) {
      return base::fail(base::usage_error("--append-eos", fmt::format("{} is not a token id", eos),
                                          fmt::format("ids are below {}", data::kMostTokens)));
    }
    request.append_eos = static_cast<data::TokenId>(eos);
  }
  ASSAY_TRY(const auto tokenizer, data::load_tokenizer(options.tokenizer));
  base::Progress progress({.label = "tokenizing",
                           .total = data::total_bytes(options.files),
                           .unit = base::ProgressUnit::kBytes,
                           .quiet = session.quiet});
  request.progress = [&progress](std::int64_t bytes) { progress.advance(bytes); };
  ASSAY_TRY(const data::TokenizeSummary made, data::tokenize_files(*tokenizer, request));
  progress.finish();
  base::Json json = shard_json(options.output, made.shard);
  json["documents"] = options.files.size();
  json["text_bytes"] = made.bytes;
  session.print_json(json);
  session.print(fmt::format("{}; from {} {}, {}\n", shard_text(options.output, made.shard),
                            options.files.size(),
                            options.files.size() == 1 ? "document" : "documents",
                            base::to_text(base::Bytes(static_cast<std::int64_t>(made.bytes)))));
  session.next(fmt::format("assay data info {}", base::shell_quoted(options.output)));
  return ExitCode::kYes;
}

Result<ExitCode> data_synth(const Session& session, const DataOptions& options) {
  ASSAY_TRY_VOID(require_output("data synth", options.output));
  data::SynthRequest request{.output = options.output};
  ASSAY_TRY(request.tokens, count_of("--tokens", options.tokens));
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
  base::Table table({"file", "dtype", "vocabulary", "tokens", "hash ok"});
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
    list.push_back({{"file", path},
                    {"dtype", data::name_of(shard.type())},
                    {"vocabulary", vocabulary ? base::Json(*vocabulary) : base::Json()},
                    {"tokens", shard.count()},
                    {"blake3", shard.digest() ? base::Json(shard.digest()->hex()) : base::Json()},
                    {"ok", ok}});
    const std::string checked = !shard.digest() ? "no hash" : ok == true ? "yes" : "no";
    table.row({path, std::string(data::name_of(shard.type())),
               vocabulary ? base::grouped(static_cast<std::int64_t>(*vocabulary)) : "—",
               base::grouped(static_cast<std::int64_t>(shard.count())),
               options.verify ? checked : "not checked"});
  }
  session.print_json(base::Json{{"tokens", tokens}, {"shards", std::move(list)}});
  session.print(table);
  if (wrong) return base::fail(*wrong);
  return ExitCode::kYes;
}

}  // namespace assay::cli
