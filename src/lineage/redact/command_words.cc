// redacted_words() of environment.h: a small state machine over words, and over the words inside a
// word that is itself a script (sh -c '…').
#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"
#include "lineage/redact/environment.h"
#include "lineage/redact/secret_name.h"

namespace assay::lineage {
namespace {

using base::is_space;

constexpr std::size_t kNone = std::string_view::npos;

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.';
}

// On a command line KEY and the like are often something else (`sort --key name`), and a stage that
// lost a word cannot be run again: there a plain short word is kept.
bool is_plain(std::string_view value) {
  if (is_number_or_truth(value) || value.starts_with('-')) return true;
  if (value.starts_with('/') || value.starts_with("./") || value.starts_with("~/")) return true;
  return value.size() < 16 &&
         std::none_of(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool hides(NameSays says, std::string_view value) {
  if (value.empty() || says == NameSays::kNothing) return false;
  if (says == NameSays::kMaybe) return !is_plain(value);
  // "$TOKEN" and "$(cat token)" are how a script refers to a secret without telling it.
  return !value.starts_with('$') && !value.starts_with("\"$");
}

// Short options of programs everyone knows that take a secret.
struct ShortOption {
  std::string_view program;
  std::string_view option;
  bool after_colon;  // user:password
  bool next = true;  // it may stand in the next word; mysql's -p alone asks for the password
  std::string_view verb = "";  // only after this word: `docker run -p` is a port
};
constexpr std::array<ShortOption, 10> kShortOptions = {{{"curl", "-u", true},
                                                        {"curl", "--user", true},
                                                        {"wget", "--user", true},
                                                        {"sshpass", "-p", false},
                                                        {"redis-cli", "-a", false},
                                                        {"docker", "-p", false, true, "login"},
                                                        {"podman", "-p", false, true, "login"},
                                                        {"mysql", "-p", false, false},
                                                        {"mysqldump", "-p", false, false},
                                                        {"mariadb", "-p", false, false}}};

class Redactor {
 public:
  std::string word(std::string_view word) {
    const bool is_script = std::exchange(next_is_script_, false);
    if (word.find_first_of(" \t\n") == kNone || pending()) return single(word);
    // "--password=two words" is one value, "PASSWORD=one command" after -c is not.
    if (!is_script && has_secret_name(word)) return single(word);
    return script(without_json_values(without_pem(word)));
  }

 private:
  [[nodiscard]] bool pending() const { return next_ != NameSays::kNothing || next_after_colon_; }

  // Every part between spaces as a word of its own; quotes keep theirs together.
  std::string script(std::string_view text) {
    std::string out;
    std::string_view before;
    if (const auto header = header_value(text)) {
      return std::string(text.substr(0, *header)) + std::string(kRedacted);
    }
    for (std::size_t at = 0; at < text.size();) {
      if (is_space(text[at])) {
        out += text[at++];
        continue;
      }
      const std::size_t begin = at;
      char quote = 0;
      for (; at < text.size() && (quote != 0 || !is_space(text[at])); ++at) {
        if (quote != 0 && text[at] == quote) {
          quote = 0;
        } else if (quote == 0 && (text[at] == '"' || text[at] == '\'')) {
          quote = text[at];
        }
      }
      std::string_view part = text.substr(begin, at - begin);
      const NameSays assigned = assigned_.value_or(NameSays::kNothing);
      assigned_.reset();
      if (part == "=" || part == ":=") assigned_ = what_name_says(before);
      if (is_spoken_of(before, text)) next_ = NameSays::kMaybe;
      before = part;
      // token = "x"
      if (const std::size_t close = closing_quote(part);
          close > 1 && hides(assigned, part.substr(1, close - 1))) {
        out += part.front() + std::string(kRedacted) + std::string(part.substr(close));
        continue;
      }
      const bool quoted = part.size() > 2 && part.front() == part.back() &&
                          (part.front() == '"' || part.front() == '\'');
      if (quoted) {
        out += part.front();
        out += word(part.substr(1, part.size() - 2));
        out += part.back();
      } else {
        out += single(part);
      }
    }
    // A value does not follow from the next word of the command.
    next_ = NameSays::kNothing;
    next_after_colon_ = false;
    assigned_.reset();
    return out;
  }

  // Whether the next word is a secret: "Bearer x", and "machine h login u password x" of .netrc.
  static bool is_spoken_of(std::string_view word, std::string_view text) {
    if (word == "Bearer" || word == "bearer") return true;
    return word == "password" && text.find("login ") != kNone;
  }

  // Of a part that begins with a quote; 0: it does not, or is not closed.
  static std::size_t closing_quote(std::string_view part) {
    if (part.empty() || (part[0] != '"' && part[0] != '\'')) return 0;
    const std::size_t close = part.find(part[0], 1);
    return close == kNone ? 0 : close;
  }

  std::string single(std::string_view word) {
    const NameSays says = std::exchange(next_, NameSays::kNothing);
    const bool after_colon = std::exchange(next_after_colon_, false);
    if (hides(says, word) && !word.starts_with('-')) return std::string(kRedacted);
    if (after_colon) return after_its_colon(word);
    if (auto known = short_option(word)) return *std::move(known);
    remember_program(word);
    next_is_script_ = word.starts_with('-') && !word.starts_with("--") && word.ends_with('c');
    if (word.starts_with('-') && word.find('=') == kNone) next_ = what_option_says(word);
    if (const auto header = header_value(word)) {
      return std::string(word.substr(0, *header)) + std::string(kRedacted);
    }
    return without_shaped_secrets(without_json_values(without_named_values(word)));
  }

  // "--use-auth-token train.py" is a switch and a program, not a token.
  static NameSays what_option_says(std::string_view option) {
    const NameSays says = what_name_says(option);
    option.remove_prefix(std::min(option.find_first_not_of('-'), option.size()));
    for (const std::string_view verb :
         {"no", "use", "with", "enable", "disable", "allow", "skip"}) {
      if (option.starts_with(verb) && says == NameSays::kSecret) return NameSays::kMaybe;
    }
    return says;
  }

  static bool has_secret_name(std::string_view word) {
    const std::string_view name = word.substr(0, word.find('='));
    return name.size() < word.size() && std::all_of(name.begin(), name.end(), is_name_char) &&
           what_name_says(name) == NameSays::kSecret;
  }

  static std::string after_its_colon(std::string_view word) {
    const std::size_t colon = word.find(':');
    if (colon == kNone || is_number_or_truth(word)) return std::string(word);
    return std::string(word.substr(0, colon + 1)) + std::string(kRedacted);
  }

  std::optional<std::string> short_option(std::string_view word) {
    for (const ShortOption& known : kShortOptions) {
      if (program_ != known.program || !word.starts_with(known.option)) continue;
      if (!known.verb.empty() && verb_ != known.verb) continue;
      std::string_view value = word.substr(known.option.size());
      const bool is_long = known.option.starts_with("--");
      if (is_long && !value.empty() && !value.starts_with('=')) continue;
      if (value.empty()) {
        next_after_colon_ = known.after_colon;
        if (known.next && !known.after_colon) next_ = NameSays::kSecret;
        return std::string(word);
      }
      const std::size_t keep = known.option.size() + (is_long ? 1 : 0);
      value = word.substr(keep);
      return std::string(word.substr(0, keep)) +
             (known.after_colon ? after_its_colon(value) : std::string(kRedacted));
    }
    return std::nullopt;
  }

  void remember_program(std::string_view word) {
    const std::string_view file = word.substr(word.rfind('/') + 1);
    for (const ShortOption& known : kShortOptions) {
      if (file == known.program) program_ = known.program;
      if (!known.verb.empty() && program_ == known.program && word == known.verb) {
        verb_ = known.verb;
      }
    }
  }

  // "Authorization: Bearer x", "X-Api-Key: x": where the value begins.
  static std::optional<std::size_t> header_value(std::string_view word) {
    const std::size_t colon = word.find(':');
    if (colon == kNone || colon + 1 >= word.size()) return std::nullopt;
    std::string_view name = word.substr(0, colon);
    // --header=Authorization: x
    if (const std::size_t equals = name.rfind('='); word.starts_with('-') && equals != kNone) {
      name.remove_prefix(equals + 1);
    }
    if (!std::all_of(name.begin(), name.end(), is_name_char)) return std::nullopt;
    const std::size_t value = word.find_first_not_of(" \t", colon + 1);
    if (value == kNone || value == colon + 1) return std::nullopt;
    if (!hides(what_name_says(name), word.substr(value))) return std::nullopt;
    return value;
  }

  // NAME=VALUE: the whole rest of a word that begins so, and up to a separator inside one.
  static std::string without_named_values(std::string_view word) {
    std::string out;
    std::size_t at = 0;
    while (true) {
      const std::size_t equals = word.find('=', at);
      if (equals == kNone) break;
      std::size_t begin = equals;
      while (begin > at && is_name_char(word[begin - 1])) --begin;
      const bool whole = begin == 0;
      std::size_t end = whole ? word.size() : word.find_first_of("&;,\"' \t\n", equals + 1);
      if (end == kNone) end = word.size();
      const bool hidden = hides(what_name_says(word.substr(begin, equals - begin)),
                                word.substr(equals + 1, end - equals - 1));
      out += word.substr(at, equals + 1 - at);
      if (hidden) out += kRedacted;
      at = hidden ? end : equals + 1;
    }
    out += word.substr(at);
    return out;
  }

  // {"name": "value"}
  static std::string without_json_values(std::string_view word) {
    std::string out;
    std::size_t at = 0;
    while (true) {
      const std::size_t colon = word.find("\":", at);
      if (colon == kNone) break;
      std::size_t begin = colon;
      while (begin > at && is_name_char(word[begin - 1])) --begin;
      const std::size_t quote = word.find_first_not_of(" \t\n", colon + 2);
      const bool text = quote != kNone && word[quote] == '"';
      const std::size_t end = text ? word.find('"', quote + 1) : kNone;
      const std::size_t value = text ? quote + 1 : colon + 2;
      out += word.substr(at, value - at);
      at = value;
      if (end != kNone && hides(what_name_says(word.substr(begin, colon - begin)),
                                word.substr(value, end - value))) {
        out += kRedacted;
        at = end;
      }
    }
    out += word.substr(at);
    return out;
  }

  std::optional<NameSays> assigned_;    // after NAME =
  NameSays next_ = NameSays::kNothing;  // what the option before says of the next word
  bool next_after_colon_ = false;
  bool next_is_script_ = false;  // sh -c
  std::string_view program_, verb_;
};

}  // namespace

std::vector<std::string> redacted_words(std::span<const std::string> words) {
  Redactor redactor;
  std::vector<std::string> kept;
  kept.reserve(words.size());
  for (const std::string& word : words) kept.push_back(redactor.word(word));
  return kept;
}

std::string redacted_joined_words(std::string_view words) {
  Redactor redactor;
  std::string kept;
  for (std::size_t begin = 0; begin <= words.size();) {
    const std::size_t end = std::min(words.find('\0', begin), words.size());
    if (begin > 0) kept += '\0';
    kept += redactor.word(words.substr(begin, end - begin));
    begin = end + 1;
  }
  return kept;
}

}  // namespace assay::lineage
