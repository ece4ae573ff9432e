// A false positive hides a variable someone wanted to see; a false negative writes a password to
// disk. So the lists err towards the former.
#include "lineage/redact/secret_name.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <vector>

#include "base/text.h"

namespace assay::lineage {
namespace {

using base::is_digit;
using base::is_lower;
using base::is_upper;

constexpr std::array<std::string_view, 21> kSecretWords = {
    "PW",         "PASSWORD",    "PASSWORDS",  "PASSWD", "PASSPHRASE", "SECRET",  "SECRETS",
    "CREDENTIAL", "CREDENTIALS", "CREDS",      "APIKEY", "COOKIE",     "DSN",     "TOKEN",
    "COOKIES",    "AUTHTOKEN",   "CLIENTAUTH", "BEARER", "JWT",        "SSHPASS", "AUTHORIZATION"};

// Joined without a separator: PGPASSWORD, GHTOKEN.
constexpr std::array<std::string_view, 14> kSecretEndings = {
    "PASSWORD",  "PASSWD",     "PASSPHRASE", "SECRET", "APIKEY",     "TOKEN",         "ACCESSKEY",
    "SECRETKEY", "PRIVATEKEY", "AUTHKEY",    "SASKEY", "ENCRYPTKEY", "ENCRYPTIONKEY", "MASTERKEY"};

// PGPASS, ROOTPASS, USERPWD; but not BYPASS and COMPASS.
constexpr std::array<std::string_view, 2> kJoinedPasses = {"PASS", "PWD"};
constexpr std::array<std::string_view, 9> kOtherPasses = {"ASKPASS",  "BYPASS",   "COMPASS",
                                                          "SURPASS",  "TRESPASS", "ENCOMPASS",
                                                          "OVERPASS", "OLDPWD",   "MULTIPASS"};

constexpr std::array<std::string_view, 15> kMaybeWords = {
    "KEY", "KEYS", "TOKENS", "PASS", "PWD", "AUTH",      "SESSION", "SESSIONS",
    "PAT", "PIN",  "OTP",    "CRED", "SIG", "SIGNATURE", "PRIVATE"};

// KEY or PASS after one of these is always a secret.
constexpr std::array<std::string_view, 10> kQualifiers = {
    "API",     "ACCESS",     "SECRET", "PRIVATE", "AUTH",
    "SIGNING", "ENCRYPTION", "MASTER", "DB",      "ACCOUNT"};

// The value is then a path or a quantity, not the secret: PASSWORD_FILE, KEY_LENGTH.
constexpr std::array<std::string_view, 23> kDescriptionWords = {
    "FILE", "FILES",  "PATH", "PATHS", "DIR",  "DIRECTORY", "FOLDER",     "SOCK",
    "SIZE", "SOCKET", "NAME", "TYPE",  "MODE", "LENGTH",    "COUNT",      "TIMEOUT",
    "TTL",  "HOST",   "PORT", "LIMIT", "PER",  "PERIOD",    "PARALLELISM"};

// Special tokens of a tokenizer: --eos-token "</s>".
constexpr std::array<std::string_view, 14> kTokenizerWords = {
    "EOS",  "BOS", "PAD",     "MASK", "UNK", "SEP", "CLS",
    "STOP", "PER", "SPECIAL", "NEW",  "MAX", "MIN", "NUM"};

// Set by desktops and shells. PWD is a directory.
constexpr std::array<std::string_view, 8> kHarmlessNames = {
    "PWD",        "OLDPWD",          "SESSION_MANAGER",  "DBUS_SESSION_BUS_ADDRESS",
    "WT_SESSION", "DESKTOP_SESSION", "ITERM_SESSION_ID", "TERM_SESSION_ID"};

template <std::size_t N>
bool has(const std::array<std::string_view, N>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// Capitalised words: "npm_config__authToken" is NPM CONFIG AUTH TOKEN, "APIKey2" is API KEY.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (!is_lower(c) && !is_upper(c)) {
      if (!words.back().empty()) words.emplace_back();
      continue;
    }
    const bool after_lower = i > 0 && is_lower(name[i - 1]);
    const bool before_lower =
        i > 0 && is_upper(name[i - 1]) && i + 1 < name.size() && is_lower(name[i + 1]);
    if (is_upper(c) && (after_lower || before_lower) && !words.back().empty()) {
      words.emplace_back();
    }
    words.back() += static_cast<char>(std::toupper(c));
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

bool ends_secret(std::string_view word) {
  return std::any_of(kSecretEndings.begin(), kSecretEndings.end(),
                     [&](std::string_view ending) { return word.ends_with(ending); });
}

bool ends_in_pass(std::string_view word) {
  return !has(kOtherPasses, word) &&
         std::any_of(kJoinedPasses.begin(), kJoinedPasses.end(), [&](std::string_view ending) {
           return word.size() > ending.size() + 1 && word.ends_with(ending);
         });
}

}  // namespace

Secrecy secrecy_of_name(std::string_view name) {
  if (has(kHarmlessNames, name) || name.starts_with("XDG_")) return Secrecy::kPublic;
  const std::vector<std::string> words = words_of(name);
  if (words.empty() || has(kDescriptionWords, words.back())) return Secrecy::kPublic;
  Secrecy secrecy = Secrecy::kPublic;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    const std::string_view before = i > 0 ? std::string_view(words[i - 1]) : std::string_view();
    if (word == "KEY" && before == "PUBLIC") continue;
    const bool of_tokenizer = word.starts_with("TOKEN") && has(kTokenizerWords, before);
    if (!of_tokenizer && (has(kSecretWords, word) || ends_secret(word) || ends_in_pass(word)))
      return Secrecy::kSecret;
    if (!has(kMaybeWords, word) && !of_tokenizer) continue;
    if (!of_tokenizer && word != "TOKENS" && has(kQualifiers, before)) return Secrecy::kSecret;
    if (!of_tokenizer) secrecy = Secrecy::kMaybe;
  }
  return secrecy;
}

bool is_number_or_bool(std::string_view value) {
  static constexpr std::array<std::string_view, 8> kBooleans = {"true", "false", "yes",  "no",
                                                                "on",   "off",   "True", "False"};
  if (value.empty() || has(kBooleans, value)) return true;
  // More digits are a card or account number or a one-time code rather than a quantity.
  if (value.size() > 15 || std::none_of(value.begin(), value.end(), is_digit)) return false;
  return value.find_first_not_of("0123456789.,:+-_eE") == std::string_view::npos;
}

}  // namespace assay::lineage
