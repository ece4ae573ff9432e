#include "train/data/bpe_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "train/data/bpe.h"
#include "train/data/tokenizer.h"
#include "train/data/tokenizer_json.h"
#include "train/data/word_splitter.h"

namespace assay::data {
namespace {

// Finds literal tokens (<|endoftext|>) in text before it is split into words. The leftmost match
// wins; of matches with the same start, the longest.
class AddedTokens {
 public:
  // The texts must not be empty.
  explicit AddedTokens(std::vector<std::pair<std::string, TokenId>> tokens);

  struct Found {
    std::size_t begin;  // no added token begins before this
    std::size_t size;   // 0: none, but if `more` text follows, one may start at `begin`
    TokenId token;
  };
  // Searches from `from` on. Without a match `begin` is the end of the text.
  [[nodiscard]] Found find(std::string_view text, std::size_t from, bool more) const;

 private:
  std::vector<std::pair<std::string, TokenId>> sorted_;
  std::array<bool, 256> starts_{};
};

AddedTokens::AddedTokens(std::vector<std::pair<std::string, TokenId>> tokens)
    : sorted_(std::move(tokens)) {
  std::sort(sorted_.begin(), sorted_.end());
  for (const auto& [text, token] : sorted_) starts_[static_cast<unsigned char>(text[0])] = true;
}

AddedTokens::Found AddedTokens::find(std::string_view text, std::size_t from, bool more) const {
  if (sorted_.empty()) return {text.size(), 0, 0};
  for (std::size_t begin = from; begin < text.size(); ++begin) {
    if (!starts_[static_cast<unsigned char>(text[begin])]) continue;
    // The candidates are a range of the sorted texts that narrows with each byte; the shortest is
    // its first.
    auto low = sorted_.begin();
    auto high = sorted_.end();
    Found longest{begin, 0, 0};
    std::size_t size = 0;
    while (low != high && begin + size < text.size()) {
      const auto letter_of = [size](const auto& entry) {
        return static_cast<unsigned char>(entry.first[size]);
      };
      const auto letter = static_cast<unsigned char>(text[begin + size]);
      low = std::partition_point(low, high, [&](const auto& e) { return letter_of(e) < letter; });
      high = std::partition_point(low, high, [&](const auto& e) { return letter_of(e) == letter; });
      ++size;
      if (low != high && low->first.size() == size) {
        longest = {begin, size, low->second};
        ++low;
      }
    }
    if (low != high && more) return {begin, 0, 0};  // the text ended first
    if (longest.size > 0) return longest;
  }
  return {text.size(), 0, 0};
}

// The longest word that is buffered while its end is not known.
constexpr std::size_t kLongestWord = std::size_t{512} << 20;

struct BpeParts {
  BpeVocabulary vocabulary;
  WordSplitter splitter;
  AddedTokens added;
  std::string pattern;
};

class BpeEncoder : public Encoder {
 public:
  explicit BpeEncoder(const BpeParts& parts) : parts_(parts) {}

  base::Result<void> feed(std::string_view text, std::vector<TokenId>& tokens) override {
    pending_ += text;
    if (pending_.size() > kLongestWord) {
      return base::fail(base::failed_error({}, "the text has a word of more than 512 MiB",
                                           "if it is not text, use --tokenizer bytes"));
    }
    // A word of many parts is not rescanned for each of them.
    if (pending_.size() < 2 * kept_) return {};
    return encode_pending(tokens, true);
  }

  base::Result<void> finish(std::vector<TokenId>& tokens) override {
    ASSAY_TRY_VOID(encode_pending(tokens, false));
    abandon();
    return {};
  }

  std::string abandon() override {
    kept_ = 0;
    consumed_ = 0;
    return std::exchange(pending_, {});
  }
  [[nodiscard]] std::size_t pending() const override { return pending_.size(); }
  void watch(std::vector<WordEnd>* ends) override { ends_ = ends; }

 private:
  base::Result<void> encode_pending(std::vector<TokenId>& tokens, bool more) {
    const std::string_view text = pending_;
    std::size_t done = 0;
    while (done < text.size()) {
      const AddedTokens::Found found = parts_.added.find(text, done, more);
      const bool open = more && found.size == 0;  // the text before it may continue
      ASSAY_TRY(const std::size_t taken,
                encode_text(text.substr(done, found.begin - done), open, tokens));
      done += taken;
      if (found.size == 0) break;
      tokens.push_back(found.token);
      done += found.size;
      word_ended(text.data() + done, tokens);
    }
    pending_.erase(0, done);
    consumed_ += done;
    kept_ = pending_.size();
    return {};
  }

  // Returns how much of the text was encoded: all of it unless `more` may follow.
  base::Result<std::size_t> encode_text(std::string_view text, bool more,
                                        std::vector<TokenId>& tokens) {
    std::size_t done = 0;
    while (done < text.size()) {
      const Utf8Run run = utf8_run(text.substr(done));
      const bool last = done + run.size == text.size();
      const std::string_view valid = text.substr(done, run.size);
      ASSAY_TRY(const std::size_t taken, encode_valid(valid, more && (last || run.cut), tokens));
      done += taken;
      if (taken < run.size || done == text.size()) break;
      if (more && run.cut) break;  // the rest of the character may be in the next part
      tokens.push_back(byte_id(text[done]));
      ++done;
      word_ended(text.data() + done, tokens);
    }
    return done;
  }

  base::Result<std::size_t> encode_valid(std::string_view text, bool more,
                                         std::vector<TokenId>& tokens) {
    std::size_t done = 0;
    while (done < text.size()) {
      ASSAY_TRY(const std::size_t end, parts_.splitter.word_end(scratch_, text, done, more));
      if (end == 0) break;
      encode_word(text.substr(done, end - done), tokens);
      done = end;
      word_ended(text.data() + done, tokens);
    }
    return done;
  }

  void encode_word(std::string_view word, std::vector<TokenId>& tokens) {
    if (cache_.find(word, tokens)) return;
    const std::size_t before = tokens.size();
    const BpeVocabulary& vocabulary = parts_.vocabulary;
    const auto whole =
        vocabulary.whole_words_first ? vocabulary.words.find(word) : vocabulary.words.end();
    if (whole != vocabulary.words.end()) {
      tokens.push_back(whole->second);
    } else {
      merger_.merge(vocabulary.byte_ids, vocabulary.pairs, word, tokens);
    }
    cache_.store(word, std::span(tokens).subspan(before));
  }

  void word_ended(const char* end, const std::vector<TokenId>& tokens) {
    if (ends_ == nullptr) return;
    ends_->push_back(
        {consumed_ + static_cast<std::uint64_t>(end - pending_.data()), tokens.size()});
  }

  [[nodiscard]] TokenId byte_id(char byte) const {
    return parts_.vocabulary.byte_ids[static_cast<unsigned char>(byte)];
  }

  const BpeParts& parts_;
  WordSplitter::Scratch scratch_;
  WordMerger merger_;
  WordCache cache_;
  std::string pending_;         // text whose tokens are not known yet
  std::size_t kept_ = 0;        // its size when it was last scanned
  std::uint64_t consumed_ = 0;  // bytes of the document before it
  std::vector<WordEnd>* ends_ = nullptr;
};

class BpeTokenizer : public Tokenizer {
 public:
  explicit BpeTokenizer(BpeParts parts) : parts_(std::move(parts)) {}

  [[nodiscard]] std::uint64_t vocabulary() const override {
    return parts_.vocabulary.spellings.size();
  }
  [[nodiscard]] std::unique_ptr<Encoder> encoder() const override {
    return std::make_unique<BpeEncoder>(parts_);
  }
  [[nodiscard]] base::Result<std::string> decode(std::span<const TokenId> tokens) const override {
    const auto& spellings = parts_.vocabulary.spellings;
    std::string text;
    for (const TokenId token : tokens) {
      if (token >= spellings.size() || !spellings[token]) {
        return base::fail(
            base::failed_error({}, fmt::format("token {} is not in the vocabulary", token)));
      }
      text += *spellings[token];
    }
    return text;
  }

  [[nodiscard]] const std::vector<AddedToken>& added() const override {
    return parts_.vocabulary.added;
  }
  [[nodiscard]] std::string definition(const std::vector<AddedToken>& more) const override {
    return tokenizer_json_text(parts_.vocabulary, parts_.pattern, more);
  }

 private:
  BpeParts parts_;
};

}  // namespace

void BpeVocabulary::spell(TokenId id, std::string bytes) {
  if (spellings.size() <= id) spellings.resize(id + std::size_t{1});
  spellings[id] = std::move(bytes);
}

base::Result<void> BpeVocabulary::find_byte_ids(const std::string& where, std::string_view list) {
  for (unsigned byte = 0; byte < byte_ids.size(); ++byte) {
    const auto found = words.find(std::string(1, static_cast<char>(byte)));
    if (found == words.end()) {
      return base::fail(
          base::usage_error(where,
                            fmt::format("{}{}has no token for the byte 0x{:02x}", list,
                                        list.empty() ? "" : " ", byte),
                            "byte-level vocabularies have one for each of the 256 bytes"));
    }
    byte_ids[byte] = found->second;
  }
  return {};
}

std::unique_ptr<const Tokenizer> bpe_tokenizer(BpeVocabulary vocabulary, WordSplitter splitter,
                                               std::string pattern) {
  AddedTokens added(vocabulary.added_as_text ? std::vector<AddedToken>() : vocabulary.added);
  return std::make_unique<BpeTokenizer>(
      BpeParts{std::move(vocabulary), std::move(splitter), std::move(added), std::move(pattern)});
}

}  // namespace assay::data
