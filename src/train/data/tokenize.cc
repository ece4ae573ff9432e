#include "train/data/tokenize.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "base/json.h"
#include "hash/blake3.h"
#include "train/data/in_order.h"
#include "train/data/shard.h"
#include "train/data/shard_writer.h"
#include "train/data/tokenize_journal.h"

namespace assay::data {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kJournalEvery{10};

base::Result<void> check_files(const TokenizeRequest& request) {
  for (const InputFile& file : request.files) {
    ASSAY_TRY_VOID(check_is_no_shard(file.path));
    std::error_code ignored;
    if (file.path != "-" && fs::equivalent(file.path, request.output, ignored)) {
      return base::fail(base::usage_error(
          request.output.string(), "is both a document and the output", "choose another output"));
    }
  }
  return {};
}

// Tokens that the tokenizer does not have become added tokens of the shard's tokenizer.
std::vector<AddedToken> new_tokens(const Tokenizer& tokenizer, const DocumentRules& rules) {
  std::vector<AddedToken> added;
  if (rules.bos && *rules.bos >= tokenizer.vocabulary()) added.emplace_back("<|bos|>", *rules.bos);
  if (rules.eos && *rules.eos >= tokenizer.vocabulary() && rules.eos != rules.bos) {
    added.emplace_back("<|eos|>", *rules.eos);
  }
  return added;
}

class Tokenization {
 public:
  Tokenization(const Tokenizer& tokenizer, const TokenizeRequest& request)
      : tokenizer_(tokenizer), request_(request), joiner_(tokenizer, request.rules) {
    const std::vector<AddedToken> added = new_tokens(tokenizer, request.rules);
    definition_ = tokenizer.definition(added);
    vocabulary_ = tokenizer.vocabulary();
    for (const auto& [text, id] : added) {
      vocabulary_ = std::max(vocabulary_, std::uint64_t{id} + 1);
    }
    resumable_ = total_bytes(request.files).has_value();
  }

  base::Result<TokenizeSummary> run() {
    ASSAY_TRY(ShardWriter shard, open_shard());
    const unsigned threads =
        request_.threads > 0 ? request_.threads : std::max(1U, std::thread::hardware_concurrency());
    std::vector<std::unique_ptr<Encoder>> encoders(threads);
    for (auto& encoder : encoders) encoder = tokenizer_.encoder();

    std::atomic<bool> stop = false;
    UnitReader reader(request_.files, begin_, request_.unit_bytes, request_.rules.column, &stop);
    journal_time_ = std::chrono::steady_clock::now();
    const InOrder<TextUnit, UnitTokens> steps{
        .read = [&]() -> base::Result<std::optional<TextUnit>> {
          if (has_enough_) return std::nullopt;
          return reader.next();
        },
        .work =
            [&](unsigned worker, TextUnit unit) {
              const InputFile& file = request_.files[unit.begin.file];
              return tokens_of_unit(*encoders[worker], request_.rules, file.format, file.path,
                                    std::move(unit));
            },
        .take = [&](UnitTokens made) { return take(std::move(made), shard); }};
    ASSAY_TRY_VOID(run_in_order(threads, steps, stop));
    if (summary_.documents == 0 && summary_.rows_without.first_bad) {
      return base::fail(*summary_.rows_without.first_bad);
    }
    ASSAY_TRY(summary_.shard, shard.finish());
    remove_journal(request_.output);
    return summary_;
  }

 private:
  base::Result<ShardWriter> open_shard() {
    const ShardDocuments documents{definition_, request_.rules.bos, request_.rules.eos};
    if (const auto journal = read_journal(request_.output);
        resumable_ && journal && journal->position.file <= request_.files.size() &&
        journal->request == request_digest(journal->position)) {
      auto shard = ShardWriter::resume(request_.output, vocabulary_, documents, journal->shard);
      if (shard) {
        begin_ = journal->position;
        journalled_bytes_ = journal->text_bytes;
        summary_ = {.documents = journal->documents,
                    .bytes = journal->text_bytes,
                    .resumed_at = journal->shard.tokens,
                    .rows_without = {.null = journal->null_rows, .bad = journal->bad_rows}};
        shard->keep_drafts();
        report_skipped();
        return shard;
      }
      // Drafts that do not match the journal are made again.
      if (shard.error().code == base::ExitCode::kUsage) return shard;
    }
    ASSAY_TRY(ShardWriter shard, ShardWriter::create(request_.output, vocabulary_, documents));
    remove_journal(request_.output);
    return shard;
  }

  // Everything that the tokens before a position depend on.
  [[nodiscard]] hash::Digest request_digest(const ReadPosition& position) const {
    base::Json json{{"tokenizer", hash::blake3(std::as_bytes(std::span(definition_))).hex()},
                    {"column", request_.rules.column},
                    {"skip_bad_rows", request_.rules.skip_bad_rows},
                    {"bos", base::or_null(request_.rules.bos)},
                    {"eos", base::or_null(request_.rules.eos)}};
    const std::size_t read = std::min(position.file + 1, request_.files.size());
    for (std::size_t i = 0; i < read; ++i) {
      const InputFile& file = request_.files[i];
      json["files"].push_back({file.path, file.bytes, file.modified_ns,
                               static_cast<int>(file.format), static_cast<int>(file.compression)});
    }
    const std::string text = json.dump(-1, ' ', true, base::Json::error_handler_t::replace);
    return hash::blake3(std::as_bytes(std::span(text)));
  }

  base::Result<void> take(UnitTokens made, ShardWriter& shard) {
    if (request_.stop != nullptr && *request_.stop) {
      return base::fail(base::failed_error(request_.output.string(), "was not finished: stopped"));
    }
    const std::size_t file = made.unit.begin.file;
    const std::uint64_t disk_read = made.unit.disk_read;
    summary_.documents += made.documents;
    summary_.bytes += made.text_bytes;
    summary_.rows_without += made.rows_without;
    ASSAY_TRY_VOID(joiner_.add(std::move(made), shard));
    has_enough_ = request_.enough > 0 && shard.tokens() >= request_.enough + summary_.documents;
    report(file, disk_read);
    const auto now = std::chrono::steady_clock::now();
    const bool due = summary_.bytes - journalled_bytes_ >= request_.journal_bytes ||
                     now - journal_time_ >= kJournalEvery;
    // Not before the document's first token: the shard does not record yet that it has begun.
    const ReadPosition position = joiner_.position();
    const bool nothing_of_it = position.inside && position.offset == 0;
    if (!resumable_ || !due || nothing_of_it) return {};
    journal_time_ = now;
    journalled_bytes_ = summary_.bytes;
    ASSAY_TRY(const ShardProgress progress, shard.progress());
    ASSAY_TRY_VOID(
        write_journal(request_.output, {.request = request_digest(position),
                                        .position = position,
                                        .shard = progress,
                                        .documents = summary_.documents,
                                        .null_rows = summary_.rows_without.null,
                                        .bad_rows = summary_.rows_without.bad,
                                        .text_bytes = summary_.bytes - joiner_.pending()}));
    shard.keep_drafts();
    return {};
  }

  void report(std::size_t file, std::uint64_t disk_read) {
    if (file != reported_file_) reported_bytes_ = 0;
    reported_file_ = file;
    if (request_.progress && disk_read > reported_bytes_) {
      request_.progress(static_cast<std::int64_t>(disk_read - reported_bytes_));
    }
    reported_bytes_ = std::max(reported_bytes_, disk_read);
  }
  void report_skipped() {
    for (std::size_t i = 0; i < begin_.file; ++i) report(i, request_.files[i].bytes);
  }

  const Tokenizer& tokenizer_;
  const TokenizeRequest& request_;
  UnitJoiner joiner_;
  std::string definition_;
  std::uint64_t vocabulary_ = 0;
  std::atomic<bool> has_enough_ = false;  // read by the reader's thread
  bool resumable_ = true;                 // standard input cannot be read again
  ReadPosition begin_;
  TokenizeSummary summary_;
  std::uint64_t journalled_bytes_ = 0;
  std::chrono::steady_clock::time_point journal_time_;
  std::size_t reported_file_ = 0;
  std::uint64_t reported_bytes_ = 0;
};

}  // namespace

base::Result<TokenizeSummary> tokenize_files(const Tokenizer& tokenizer,
                                             const TokenizeRequest& request) {
  ASSAY_TRY_VOID(check_files(request));
  return Tokenization(tokenizer, request).run();
}

}  // namespace assay::data
