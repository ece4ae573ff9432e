// Counts the words of documents, as split by a pattern: the input for training a byte-pair
// vocabulary.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "train/data/bpe_tokenizer.h"
#include "train/data/documents/input_files.h"
#include "train/data/documents/json_line.h"
#include "train/data/word_splitter.h"

namespace assay::data {

using WordCounts = std::unordered_map<std::string, std::uint64_t, BytesHash, std::equal_to<>>;

struct CountWordsRequest {
  std::vector<InputFile> files;
  std::string column = "text";                      // for JSON lines
  bool skip_bad_rows = false;                       // count them instead of failing
  unsigned threads = 0;                             // 0: as many as there are processors
  std::function<void(std::int64_t)> progress = {};  // bytes on disk just read
};

struct CountedWords {
  WordCounts words;
  std::uint64_t documents = 0;
  std::uint64_t bytes = 0;  // total size of the documents
  RowsWithout rows_without = {};
};

// Adds the words of one document.
base::Result<void> count_words_of(const WordSplitter& splitter, std::string_view text,
                                  WordCounts& words);

// Long texts are divided at line starts, where every pattern begins a new word. Bytes that are not
// UTF-8 count as separate words and are left out.
base::Result<CountedWords> count_words(const WordSplitter& splitter,
                                       const CountWordsRequest& request);

}  // namespace assay::data
