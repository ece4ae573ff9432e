#include "train/data/bpe.h"

#include <algorithm>
#include <array>
#include <functional>
#include <tuple>

#include "base/utf8.h"
#include "train/data/mix.h"

namespace assay::data {
namespace {

constexpr std::uint32_t kNoNode = ~std::uint32_t{0};
constexpr TokenId kMerged = ~TokenId{0};  // marks a node that was merged into its predecessor

constexpr std::uint64_t key_of(TokenId left, TokenId right) {
  return std::uint64_t{left} << 32 | right;
}

constexpr bool is_own_spelling(int byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

constexpr std::size_t kLetters = 0x100 + 68;  // 68 bytes have another spelling

constexpr std::array<int, kLetters> kByteOfLetter = [] {
  std::array<int, kLetters> bytes{};
  bytes.fill(-1);
  std::size_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    bytes[is_own_spelling(byte) ? static_cast<std::size_t>(byte) : next++] = byte;
  }
  return bytes;
}();

}  // namespace

std::size_t PairTable::slot_of(std::uint64_t key) const {
  const std::size_t mask = slots_.size() - 1;  // sizes are powers of two
  std::size_t at = mix(key) & mask;
  while (slots_[at].key != key && slots_[at].key != kEmpty) at = (at + 1) & mask;
  return at;
}

void PairTable::grow() {
  std::vector<Slot> before(slots_.size() * 2);
  std::swap(before, slots_);
  for (const Slot& slot : before) {
    if (slot.key != kEmpty) slots_[slot_of(slot.key)] = slot;
  }
}

void PairTable::add(TokenId left, TokenId right, Merge merge) {
  if (used_ * 2 >= slots_.size()) grow();
  Slot& slot = slots_[slot_of(key_of(left, right))];
  if (slot.key == kEmpty) ++used_;
  slot = {key_of(left, right), merge};
}

const PairTable::Merge* PairTable::find(TokenId left, TokenId right) const {
  const Slot& slot = slots_[slot_of(key_of(left, right))];
  return slot.key == kEmpty ? nullptr : &slot.merge;
}

std::vector<PairTable::Pair> PairTable::sorted() const {
  std::vector<Pair> pairs;
  pairs.reserve(used_);
  for (const Slot& slot : slots_) {
    if (slot.key == kEmpty) continue;
    pairs.push_back(
        {static_cast<TokenId>(slot.key >> 32), static_cast<TokenId>(slot.key), slot.merge});
  }
  std::ranges::sort(pairs, {}, [](const Pair& pair) {
    return std::tuple(pair.merge.rank, pair.left, pair.right);
  });
  return pairs;
}

void WordMerger::push_candidate(const PairTable& pairs, std::uint32_t left) {
  const std::uint32_t right = nodes_[left].after;
  if (right == kNoNode) return;
  const auto* merge = pairs.find(nodes_[left].token, nodes_[right].token);
  if (merge == nullptr) return;
  candidates_.push_back(std::uint64_t{merge->rank} << 32 | left);
  std::push_heap(candidates_.begin(), candidates_.end(), std::greater<>());
}

void WordMerger::merge(const std::array<TokenId, 256>& byte_ids, const PairTable& pairs,
                       std::string_view word, std::vector<TokenId>& tokens) {
  const auto size = static_cast<std::uint32_t>(word.size());
  nodes_.clear();
  candidates_.clear();
  for (std::uint32_t i = 0; i < size; ++i) {
    nodes_.push_back({byte_ids[static_cast<unsigned char>(word[i])], i == 0 ? kNoNode : i - 1,
                      i + 1 == size ? kNoNode : i + 1});
  }
  for (std::uint32_t i = 0; i < size; ++i) push_candidate(pairs, i);
  while (!candidates_.empty()) {
    std::pop_heap(candidates_.begin(), candidates_.end(), std::greater<>());
    const std::uint64_t candidate = candidates_.back();
    candidates_.pop_back();
    const auto at = static_cast<std::uint32_t>(candidate);
    Node& left = nodes_[at];
    // Either token may have been merged since the candidate was pushed.
    if (left.token == kMerged || left.after == kNoNode) continue;
    Node& right = nodes_[left.after];
    const auto* merge = pairs.find(left.token, right.token);
    if (merge == nullptr || merge->rank != candidate >> 32) continue;
    left.token = merge->result;
    right.token = kMerged;
    left.after = right.after;
    if (left.after != kNoNode) nodes_[left.after].before = at;
    push_candidate(pairs, at);
    if (left.before != kNoNode) push_candidate(pairs, left.before);
  }
  for (std::uint32_t at = 0; at < size; at = nodes_[at].after) {
    tokens.push_back(nodes_[at].token);
  }
}

std::optional<std::string> bytes_of_spelling(std::string_view spelling) {
  std::string bytes;
  while (!spelling.empty()) {
    const base::Utf8Char letter = base::first_utf8_char(spelling);
    if (!letter.valid || letter.code_point >= kLetters || kByteOfLetter[letter.code_point] < 0) {
      return std::nullopt;
    }
    bytes += static_cast<char>(kByteOfLetter[letter.code_point]);
    spelling.remove_prefix(letter.size);
  }
  return bytes;
}

std::string spelling_of_bytes(std::string_view bytes) {
  static const auto kLetterOfByte = [] {
    std::array<std::string, 256> letters;
    for (std::size_t letter = 0; letter < kLetters; ++letter) {
      if (kByteOfLetter[letter] < 0) continue;
      // Below U+0800: one byte of UTF-8, or two.
      std::string& text = letters[static_cast<std::size_t>(kByteOfLetter[letter])];
      if (letter < 0x80) {
        text = {static_cast<char>(letter)};
      } else {
        text = {static_cast<char>(0xc0 | letter >> 6), static_cast<char>(0x80 | (letter & 0x3f))};
      }
    }
    return letters;
  }();
  std::string spelling;
  for (const char byte : bytes) spelling += kLetterOfByte[static_cast<unsigned char>(byte)];
  return spelling;
}

}  // namespace assay::data
