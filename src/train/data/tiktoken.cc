#include "train/data/tiktoken.h"

#include <fmt/format.h>

#include <optional>

#include "base/number.h"
#include "base/text.h"

namespace assay::data {
namespace {

int base64_value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0) return std::nullopt;
  std::size_t padding = 0;
  while (padding < 2 && text.ends_with('=')) {
    text.remove_suffix(1);
    ++padding;
  }
  std::string bytes;
  unsigned buffer = 0;
  int bits = 0;
  for (const char c : text) {
    const int value = base64_value(c);
    if (value < 0) return std::nullopt;
    buffer = (buffer << 6 | static_cast<unsigned>(value)) & 0xffff;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(buffer >> bits & 0xff);
  }
  return bytes;
}

std::string to_base64(std::string_view bytes) {
  constexpr std::string_view kBase64Letters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t three = 0;
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    for (std::size_t i = 0; i < 3; ++i) {
      three = three << 8 | (i < count ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      text += i <= count ? kBase64Letters[three >> (18 - 6 * i) & 63] : '=';
    }
  }
  return text;
}

std::optional<TokenId> id_of(std::string_view text) {
  const auto id = base::parse_number<TokenId>(text);
  return id && *id < kMostTokens ? id : std::nullopt;
}

base::Result<void> read_line(std::string_view line, const std::string& where,
                             BpeVocabulary& vocabulary) {
  const std::size_t space = line.find(' ');
  const auto bytes = from_base64(line.substr(0, space));
  const auto id = space == std::string_view::npos ? std::nullopt : id_of(line.substr(space + 1));
  if (!bytes || !id) {
    return base::fail(base::usage_error(where, "is not a token in base64, a space and its rank",
                                        "is this a tiktoken file?"));
  }
  const bool taken = *id < vocabulary.spellings.size() && vocabulary.spellings[*id];
  if (taken || !vocabulary.words.emplace(*bytes, *id).second) {
    return base::fail(base::usage_error(
        where, taken ? fmt::format("rank {} appears twice", *id) : "this token appears twice"));
  }
  vocabulary.spell(*id, *bytes);
  return {};
}

// Adds every split of a token's bytes into two tokens.
void add_pairs(BpeVocabulary& vocabulary) {
  for (const auto& [bytes, id] : vocabulary.words) {
    const std::string_view whole = bytes;
    for (std::size_t cut = 1; cut < whole.size(); ++cut) {
      const auto left = vocabulary.words.find(whole.substr(0, cut));
      if (left == vocabulary.words.end()) continue;
      const auto right = vocabulary.words.find(whole.substr(cut));
      if (right == vocabulary.words.end()) continue;
      vocabulary.pairs.add(left->second, right->second, {id, id});
    }
  }
}

base::Result<void> add_special(const std::string& given, BpeVocabulary& vocabulary) {
  const std::size_t equals = given.rfind('=');
  const auto id = equals == std::string::npos ? std::nullopt : id_of(given.substr(equals + 1));
  if (!id || equals == 0) {
    return base::fail(base::usage_error("--special " + given, "is not TEXT=ID",
                                        "for example --special '<|endoftext|>=50256'"));
  }
  if (*id < vocabulary.spellings.size() && vocabulary.spellings[*id]) {
    return base::fail(
        base::usage_error("--special " + given, fmt::format("{} is the id of another token", *id)));
  }
  vocabulary.spell(*id, given.substr(0, equals));
  vocabulary.added.emplace_back(given.substr(0, equals), *id);
  return {};
}

}  // namespace

base::Result<BpeVocabulary> read_tiktoken(std::string_view text, const std::string& where,
                                          const std::vector<std::string>& special) {
  BpeVocabulary vocabulary;
  vocabulary.whole_words_first = true;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = base::trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    ASSAY_TRY_VOID(read_line(line, fmt::format("{}:{}", where, number), vocabulary));
  }
  ASSAY_TRY_VOID(vocabulary.find_byte_ids(where));
  add_pairs(vocabulary);
  for (const std::string& given : special) ASSAY_TRY_VOID(add_special(given, vocabulary));
  return vocabulary;
}

std::string tiktoken_text(const std::vector<std::string>& tokens) {
  std::string text;
  for (std::size_t rank = 0; rank < tokens.size(); ++rank) {
    text += fmt::format("{} {}\n", to_base64(tokens[rank]), rank);
  }
  return text;
}

}  // namespace assay::data
