#include "train/data/train_bpe.h"

#include <algorithm>
#include <array>
#include <queue>
#include <string_view>
#include <unordered_map>

#include "train/data/bpe.h"
#include "train/data/mix.h"

namespace assay::data {
namespace {

struct PairHash {
  std::size_t operator()(std::uint64_t pair) const { return mix(pair); }
};

constexpr std::uint64_t pair_of(TokenId left, TokenId right) {
  return std::uint64_t{left} << 32 | right;
}

// A pair that may be merged, with its count at the time it was pushed.
struct Candidate {
  std::uint64_t count;
  std::uint64_t pair;
  // The queue's top is the largest: most frequent, then lowest.
  bool operator<(const Candidate& other) const {
    return count != other.count ? count < other.count : pair > other.pair;
  }
};

class Trainer {
 public:
  explicit Trainer(const WordCounts& words) {
    // The order of bytes by their spellings.
    std::array<TokenId, 256> rank_of{};
    std::vector<std::pair<std::string, unsigned>> spelled;
    for (unsigned byte = 0; byte < 256; ++byte) {
      // Code points of one or two bytes of UTF-8: their order is that of the bytes.
      spelled.emplace_back(spelling_of_bytes(std::string(1, static_cast<char>(byte))), byte);
    }
    std::ranges::sort(spelled);
    for (const auto& [spelling, byte] : spelled) {
      rank_of[byte] = static_cast<TokenId>(tokens_.size());
      add_token(std::string(1, static_cast<char>(byte)));
    }
    for (const auto& [word, count] : words) {
      if (word.size() < 2) continue;
      words_.push_back({tokens_of_words_.size(), word.size(), count});
      for (const char byte : word) {
        tokens_of_words_.push_back(rank_of[static_cast<unsigned char>(byte)]);
      }
    }
    count_pairs();
  }

  std::vector<std::string> run(std::size_t tokens,
                               const std::function<void(std::int64_t)>& progress) {
    while (tokens_.size() < tokens && !queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      Pair& pair = pairs_[best.pair];
      if (pair.count != best.count) {
        // Some occurrences have been merged into other pairs since it was pushed.
        if (pair.count > 0) queue_.push({pair.count, best.pair});
        continue;
      }
      if (pair.count == 0) continue;
      merge(best.pair);
      if (progress) progress(1);
    }
    return std::move(tokens_);
  }

 private:
  struct Word {
    std::size_t first;
    std::size_t size;  // tokens, at the front of its range
    std::uint64_t count;
  };
  struct Pair {
    std::uint64_t count = 0;
    std::vector<std::uint32_t> words;  // words that may contain it
  };

  TokenId add_token(std::string bytes) {
    const auto [found, added] =
        token_of_bytes_.emplace(bytes, static_cast<TokenId>(tokens_.size()));
    if (added) tokens_.push_back(std::move(bytes));
    return found->second;
  }

  void found(std::uint64_t pair, std::uint32_t word) {
    Pair& entry = pairs_[pair];
    entry.count += words_[word].count;
    if (entry.words.empty() || entry.words.back() != word) entry.words.push_back(word);
  }

  void count_pairs() {
    for (std::uint32_t w = 0; w < words_.size(); ++w) {
      const TokenId* tokens = tokens_of_words_.data() + words_[w].first;
      for (std::size_t i = 0; i + 1 < words_[w].size; ++i) {
        found(pair_of(tokens[i], tokens[i + 1]), w);
      }
    }
    for (const auto& [pair, entry] : pairs_) queue_.push({entry.count, pair});
  }

  void merge(std::uint64_t pair) {
    const auto left = static_cast<TokenId>(pair >> 32);
    const auto right = static_cast<TokenId>(pair);
    const TokenId made = add_token(tokens_[left] + tokens_[right]);
    // Pairs with the new token have no entries yet, unless two merges produce the same token.
    std::vector<std::uint64_t> changed;
    const std::vector<std::uint32_t> words = std::move(pairs_[pair].words);
    for (const std::uint32_t w : words) merge_in(w, left, right, made, changed);
    pairs_.erase(pair);
    std::ranges::sort(changed);
    changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
    for (const std::uint64_t one : changed) {
      if (const auto at = pairs_.find(one); at != pairs_.end() && at->second.count > 0) {
        queue_.push({at->second.count, one});
      }
    }
  }

  // Rewrites a word in place; its tokens move to the front.
  void merge_in(std::uint32_t w, TokenId left, TokenId right, TokenId made,
                std::vector<std::uint64_t>& changed) {
    Word& word = words_[w];
    TokenId* tokens = tokens_of_words_.data() + word.first;
    std::size_t to = 0;
    for (std::size_t i = 0; i < word.size;) {
      if (i + 1 < word.size && tokens[i] == left && tokens[i + 1] == right) {
        if (to > 0) {
          lose(pair_of(tokens[to - 1], left), word.count);
          gain(pair_of(tokens[to - 1], made), w, changed);
        }
        if (i + 2 < word.size) {
          lose(pair_of(right, tokens[i + 2]), word.count);
          gain(pair_of(made, tokens[i + 2]), w, changed);
        }
        tokens[to++] = made;
        i += 2;
      } else {
        tokens[to++] = tokens[i++];
      }
    }
    word.size = to;
  }

  void lose(std::uint64_t pair, std::uint64_t count) {
    const auto at = pairs_.find(pair);
    if (at != pairs_.end()) at->second.count -= std::min(count, at->second.count);
  }
  void gain(std::uint64_t pair, std::uint32_t w, std::vector<std::uint64_t>& changed) {
    found(pair, w);
    changed.push_back(pair);
  }

  std::vector<std::string> tokens_;
  std::unordered_map<std::string, TokenId> token_of_bytes_;
  std::vector<Word> words_;
  std::vector<TokenId> tokens_of_words_;
  std::unordered_map<std::uint64_t, Pair, PairHash> pairs_;
  std::priority_queue<Candidate> queue_;
};

}  // namespace

std::vector<std::string> train_bpe(const WordCounts& words, std::size_t tokens,
                                   const std::function<void(std::int64_t)>& progress) {
  return Trainer(words).run(tokens, progress);
}

}  // namespace assay::data
