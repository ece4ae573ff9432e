#include "train/data/count_words.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string_view>
#include <thread>

#include "train/data/documents/json_line.h"
#include "train/data/documents/unit_reader.h"
#include "train/data/in_order.h"
#include "train/data/shard.h"
#include "train/data/word_splitter.h"

namespace assay::data {
namespace {

constexpr std::size_t kUnitBytes = std::size_t{4} << 20;

struct UnitWords {
  CountedWords counted;
  std::size_t file = 0;
  std::uint64_t disk_read = 0;
  std::optional<base::Error> error = {};
};

base::Result<void> add_words(const WordSplitter& splitter, WordSplitter::Scratch& scratch,
                             std::string_view text, WordCounts& words) {
  while (!text.empty()) {
    const Utf8Run run = utf8_run(text);
    const std::string_view valid = text.substr(0, run.size);
    for (std::size_t at = 0; at < valid.size();) {
      ASSAY_TRY(const std::size_t end, splitter.word_end(scratch, valid, at, false));
      const std::string_view word = valid.substr(at, end - at);
      if (const auto found = words.find(word); found != words.end()) {
        ++found->second;
      } else {
        words.emplace(word, 1);
      }
      at = end;
    }
    text.remove_prefix(std::min(run.size + 1, text.size()));
  }
  return {};
}

class UnitCounter {
 public:
  UnitCounter(const WordSplitter& splitter, UnitWords& made) : splitter_(splitter), made_(made) {}

  base::Result<void> document(std::string_view text) {
    made_.counted.bytes += text.size();
    return add_words(splitter_, scratch_, text, made_.counted.words);
  }

  base::Result<void> lines(const TextUnit& unit, const std::string& path,
                           const CountWordsRequest& request) {
    return for_each_document(
        {unit.text, unit.begin.row, path, request.column, request.skip_bad_rows},
        made_.counted.rows_without, [this](const std::string& one) {
          ++made_.counted.documents;
          return document(one);
        });
  }

 private:
  const WordSplitter& splitter_;
  UnitWords& made_;
  WordSplitter::Scratch scratch_;
};

void add(CountedWords& all, CountedWords&& more) {
  all.documents += more.documents;
  all.bytes += more.bytes;
  all.rows_without += more.rows_without;
  if (all.words.empty()) {
    all.words = std::move(more.words);
    return;
  }
  for (auto& [word, count] : more.words) all.words[word] += count;
}

}  // namespace

base::Result<void> count_words_of(const WordSplitter& splitter, std::string_view text,
                                  WordCounts& words) {
  WordSplitter::Scratch scratch;
  return add_words(splitter, scratch, text, words);
}

base::Result<CountedWords> count_words(const WordSplitter& splitter,
                                       const CountWordsRequest& request) {
  for (const InputFile& file : request.files) ASSAY_TRY_VOID(check_is_no_shard(file.path));
  const unsigned threads =
      request.threads > 0 ? request.threads : std::max(1U, std::thread::hardware_concurrency());
  std::atomic<bool> stop = false;
  UnitReader reader(request.files, {}, kUnitBytes, request.column, &stop);
  CountedWords all;
  std::size_t reported_file = 0;
  std::uint64_t reported = 0;
  const InOrder<TextUnit, UnitWords> steps{
      .read = [&] { return reader.next(); },
      .work =
          [&](unsigned, const TextUnit& unit) {
            UnitWords made{.file = unit.begin.file, .disk_read = unit.disk_read};
            UnitCounter counter(splitter, made);
            const InputFile& file = request.files[unit.begin.file];
            const bool lines = has_rows(file.format);
            if (!lines && !unit.begin.inside) ++made.counted.documents;
            const auto outcome =
                lines ? counter.lines(unit, file.path, request) : counter.document(unit.text);
            if (!outcome) made.error = outcome.error();
            if (made.error && made.error->where.empty()) made.error->where = file.path;
            return made;
          },
      .take = [&](UnitWords made) -> base::Result<void> {
        if (made.error) return base::fail(*made.error);
        add(all, std::move(made.counted));
        if (made.file != reported_file) reported = 0;
        reported_file = made.file;
        if (request.progress)
          request.progress(static_cast<std::int64_t>(made.disk_read - reported));
        reported = made.disk_read;
        return {};
      }};
  ASSAY_TRY_VOID(run_in_order(threads, steps, stop));
  if (all.documents == 0 && all.rows_without.first_bad) {
    return base::fail(*all.rows_without.first_bad);
  }
  return all;
}

}  // namespace assay::data
