// One function per pattern; each maps text to text. The widest patterns are applied first.
#include "lineage/redact/secret_pattern.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/text.h"

namespace assay::lineage {
namespace {

using base::is_digit;
using base::is_lower;
using base::is_space;
using base::is_upper;

bool is_letter_or_digit(char c) {
  return is_digit(c) || is_lower(c) || is_upper(c);
}
// A token ends at the first other character.
bool is_token_char(char c) {
  return is_letter_or_digit(c) || c == '_' || c == '-';
}

// The prefix of a service's tokens, and how many characters must follow it at least.
struct Prefix {
  std::string_view text;
  std::size_t least;
};
constexpr std::array<Prefix, 26> kPrefixes = {{
    {"AKIA", 16},        {"ASIA", 16},     {"ghp_", 16},     {"gho_", 16},
    {"ghu_", 16},        {"ghs_", 16},     {"ghr_", 16},     {"glpat-", 16},
    {"github_pat_", 20}, {"sk-", 16},      {"sk_live_", 10}, {"npm_", 30},
    {"sk_test_", 10},    {"rk_live_", 10}, {"hf_", 20},      {"AIza", 30},
    {"xoxb-", 8},        {"xoxa-", 8},     {"xoxp-", 8},     {"xoxr-", 8},
    {"xoxs-", 8},        {"xoxe-", 8},     {"pypi-", 30},    {"AGE-SECRET-KEY-", 16},
    {"dop_v1_", 32},     {"nvapi-", 20},
}};

// What follows the prefix must not be plain words: "hf_transfer_max_workers",
// "sk-learn-contrib-lib".
bool looks_like_words(std::string_view rest) {
  const bool digits = std::any_of(rest.begin(), rest.end(), is_digit);
  const bool upper = std::any_of(rest.begin(), rest.end(), is_upper);
  return !digits && !upper;
}

std::size_t token_end(std::string_view text, std::size_t from) {
  while (from < text.size() && is_token_char(text[from])) ++from;
  return from;
}

// Length of the token with a known prefix at the start of `text`; 0 when there is none.
std::size_t known_token(std::string_view text) {
  for (const Prefix& prefix : kPrefixes) {
    if (!text.starts_with(prefix.text)) continue;
    const std::size_t end = token_end(text, prefix.text.size());
    const std::string_view rest = text.substr(prefix.text.size(), end - prefix.text.size());
    if (rest.size() >= prefix.least && !looks_like_words(rest)) return end;
  }
  return 0;
}

// A JSON web token: three base64 parts with dots, the first of which begins with {" in base64.
std::size_t web_token(std::string_view text) {
  constexpr std::size_t kLeast = 20;
  if (!text.starts_with("eyJ")) return 0;
  std::size_t end = token_end(text, 0);
  while (end + 1 < text.size() && text[end] == '.' && is_token_char(text[end + 1])) {
    end = token_end(text, end + 1);
  }
  return end >= kLeast ? end : 0;
}

// SendGrid's: SG., two parts with a dot between them.
std::size_t two_part_token(std::string_view text) {
  constexpr std::size_t kLeast = 16;
  if (!text.starts_with("SG.")) return 0;
  const std::size_t first = token_end(text, 3);
  if (first - 3 < kLeast || first >= text.size() || text[first] != '.') return 0;
  const std::size_t second = token_end(text, first + 1);
  return second - first - 1 >= kLeast ? second : 0;
}

}  // namespace

std::string redact_pem(std::string_view text) {
  std::string out;
  while (true) {
    const std::size_t begin = text.find("-----BEGIN ");
    out += text.substr(0, begin);
    if (begin == std::string_view::npos) return out;
    out += kRedacted;
    const std::size_t last = text.find("-----END ", begin);
    const std::size_t end =
        last == std::string_view::npos ? std::string_view::npos : text.find("-----", last + 9);
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 5);
  }
}

bool has_private_key(std::string_view text) {
  // The former is that of RFC 4716, the latter that of PEM and PGP.
  constexpr std::array<std::string_view, 2> kBegins = {"---- BEGIN ", "-----BEGIN "};
  for (const std::string_view begins : kBegins) {
    for (std::size_t at = text.find(begins); at != std::string_view::npos;
         at = text.find(begins, at + begins.size())) {
      constexpr std::size_t kLongestTitle = 80;
      std::string_view title = text.substr(at + begins.size(), kLongestTitle);
      title = title.substr(0, title.find_first_of("-\n"));
      if (title.find("PRIVATE KEY") != std::string_view::npos) return true;
    }
  }
  return text.find("PuTTY-User-Key-File-") != std::string_view::npos;
}

namespace {

// "scheme://user:password@host": redacts the password or, if there is none, a user that is not a
// plain name.
std::string redact_url_passwords(std::string_view text) {
  std::string out;
  std::size_t at = 0;
  while (true) {
    const std::size_t colon = text.find("://", at);
    if (colon == std::string_view::npos) break;
    const std::size_t begin = colon + 3;
    std::size_t end = begin;
    while (end < text.size() && !is_space(text[end]) && text[end] != '/' && text[end] != '"' &&
           text[end] != '\'') {
      ++end;
    }
    std::size_t host = text.substr(begin, end - begin).rfind('@');
    if (host == std::string_view::npos) {
      // A password may contain an unescaped slash; search once more up to the next space.
      // Not further than any password reaches, as files may have many URLs and no space.
      constexpr std::size_t kFarthest = 1024;
      while (end < text.size() && end - begin < kFarthest && !is_space(text[end])) ++end;
      const std::string_view wide = text.substr(begin, end - begin);
      host = wide.rfind('@');
      const std::size_t split = wide.find(':');
      // "http://host:80/x@y" has a port and a path; a port is a number.
      if (host != std::string_view::npos && (split > host || is_digit(wide[split + 1])))
        host = std::string_view::npos;
    }
    if (host == std::string_view::npos) {
      out += text.substr(at, begin - at);
      at = begin;
      continue;
    }
    const std::string_view user = text.substr(begin, host);
    const std::size_t split = user.find(':');
    out += text.substr(at, begin - at);
    if (split != std::string_view::npos) {
      out += user.substr(0, split + 1);
      out += kRedacted;
    } else if (user.size() >= 20) {
      out += kRedacted;
    } else {
      out += user;
    }
    at = begin + host;
  }
  out += text.substr(at);
  return out;
}

// URLs that are themselves secrets.
std::string redact_webhooks(std::string_view text) {
  constexpr std::array<std::string_view, 3> kHooks = {
      "hooks.slack.com/services/", "discord.com/api/webhooks/", "webhook.office.com/webhookb2/"};
  std::string out(text);
  for (const std::string_view hook : kHooks) {
    for (std::size_t at = out.find(hook); at != std::string_view::npos;
         at = out.find(hook, at + hook.size())) {
      const std::size_t begin = at + hook.size();
      const std::size_t end = std::min(out.find_first_of(" \t\r\n\"'", begin), out.size());
      if (end > begin) out.replace(begin, end - begin, kRedacted);
    }
  }
  return out;
}

std::string redact_tokens(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const bool boundary = at == 0 || !is_letter_or_digit(text[at - 1]);
    std::size_t length = boundary ? known_token(text.substr(at)) : 0;
    if (length == 0 && boundary) length = web_token(text.substr(at));
    if (length == 0 && boundary) length = two_part_token(text.substr(at));
    if (length > 0) out += kRedacted;
    if (length == 0) out += text[at];
    at += std::max<std::size_t>(length, 1);
  }
  return out;
}

// Runs of base64 characters that look random. Absolute paths are left alone: package stores put
// digests into them (/nix/store/…), and passwords are not kept in names of folders.
std::string redact_random_strings(std::string_view text) {
  const auto in_run = [](char c) { return is_token_char(c) || c == '+' || c == '/' || c == '='; };
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && (in_run(text[end]) || (text[at] == '/' && text[end] == '.'))) ++end;
    if (end == at) {
      out += text[at++];
      continue;
    }
    const std::string_view run = text.substr(at, end - at);
    const bool is_path = run[0] == '/' || (at > 0 && (text[at - 1] == '.' || text[at - 1] == '~'));
    // NAME=VALUE: the name stays.
    const std::size_t equals = run.find('=');
    const bool pair = equals != std::string_view::npos &&
                      run.find_first_not_of('=', equals) != std::string_view::npos;
    const std::size_t begin = pair ? equals + 1 : 0;
    const bool secret = !is_path && run.substr(begin, 1) != "/" && looks_random(run.substr(begin));
    out += run.substr(0, secret ? begin : std::string_view::npos);
    if (secret) out += kRedacted;
    at = end;
  }
  return out;
}

// "9f8eb45c…", "GPU-8f6c5e7a-1b2c-…", "sha512-…": hexadecimal parts, and words beside them.
bool is_digest(std::string_view text) {
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find_first_of("-_"));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    const bool hexadecimal =
        part.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
    const bool word = part.size() <= 6 || std::none_of(part.begin(), part.end(), is_digit);
    if (!hexadecimal && !word) return false;
  }
  return true;
}

// How often the kind of character changes: in base64 at three of five places, in words rarely.
struct CharacterStatistics {
  std::size_t letters_and_digits = 0;
  std::size_t changes = 0;
  std::size_t digit_runs = 0;
  bool lower = false, upper = false;
};

CharacterStatistics character_statistics(std::string_view text) {
  CharacterStatistics found;
  char last = 0;
  for (const char c : text) {
    if (!is_letter_or_digit(c)) continue;
    const char kind = is_digit(c) ? '0' : is_lower(c) ? 'a' : 'A';
    found.lower |= kind == 'a';
    found.upper |= kind == 'A';
    found.changes += last != 0 && kind != last ? 1U : 0U;
    found.digit_runs += kind == '0' && last != '0' ? 1U : 0U;
    ++found.letters_and_digits;
    last = kind;
  }
  return found;
}

}  // namespace

bool looks_random(std::string_view text) {
  constexpr std::size_t kLeast = 24;  // below, versions and product names look like it too
  if (text.size() < kLeast || is_digest(text)) return false;
  const CharacterStatistics found = character_statistics(text);
  const std::size_t count = found.letters_and_digits;
  if (count < kLeast) return false;
  if (found.lower && found.upper) return found.digit_runs >= 2 && found.changes * 20 >= count * 7;
  return count >= 32 && found.digit_runs >= 5 && found.changes * 4 >= count;
}

std::string redact_patterns(std::string_view text) {
  if (text.size() < 12 && text.find("://") == std::string_view::npos) return std::string(text);
  return redact_random_strings(redact_known_patterns(redact_pem(text)));
}

std::string redact_known_patterns(std::string_view text) {
  return redact_tokens(redact_webhooks(redact_url_passwords(text)));
}

std::string strip_credentials(std::string_view url) {
  const std::size_t colon = url.find("://");
  if (colon == std::string_view::npos) return redact_patterns(url);
  const std::size_t begin = colon + 3;
  const std::size_t end = std::min(url.find('/', begin), url.size());
  const std::size_t host = url.substr(begin, end - begin).rfind('@');
  if (host == std::string_view::npos) return redact_patterns(url);
  std::string_view user = url.substr(begin, host);
  user = user.substr(0, user.find(':'));
  const bool keeps_user =
      url.substr(0, colon).find("ssh") != std::string_view::npos && user.size() < 20;
  std::string out(url.substr(0, begin));
  if (keeps_user) out += std::string(user) + "@";
  out += url.substr(begin + host + 1);
  return redact_patterns(out);
}

}  // namespace assay::lineage
