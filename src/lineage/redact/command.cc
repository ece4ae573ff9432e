// Arguments are redacted by a small state machine, which also walks the words of an argument that
// is itself a script (sh -c '…').
#include "lineage/redact/command.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/text.h"
#include "lineage/redact/secret_name.h"
#include "lineage/redact/secret_option.h"

namespace assay::lineage {
namespace {

// LD_PRELOAD without Assay's libraries; entries are separated by spaces or colons.
std::string without_assay_libraries(std::string_view value) {
  std::string out;
  while (!value.empty()) {
    const std::size_t end = std::min(value.find_first_of(" :"), value.size());
    const std::string_view entry = value.substr(0, end);
    const std::string_view file = entry.substr(entry.rfind('/') + 1);
    if (!entry.empty() && !file.starts_with("libassay")) {
      if (!out.empty()) out += ':';
      out += entry;
    }
    value.remove_prefix(std::min(end + 1, value.size()));
  }
  return out;
}

}  // namespace

bool is_redacted(std::string_view text) {
  return text.find(kRedacted) != std::string_view::npos;
}

std::string redact_value(std::string_view name, std::string_view value) {
  const Secrecy secrecy = secrecy_of_name(name);
  const bool directory = name.ends_with("PWD") && value.starts_with('/');
  const bool secret = secrecy == Secrecy::kSecret
                          ? !value.empty()
                          : secrecy == Secrecy::kMaybe && !directory && !is_number_or_bool(value);
  if (secret) return std::string(kRedacted);
  // A value can contain named secrets ("host=x password=y"), like an argument.
  return redact_arguments(std::vector<std::string>{std::string(value)})[0];
}

std::map<std::string, std::string> redact_environment(std::span<const std::string> entries) {
  std::map<std::string, std::string> kept;
  for (const std::string_view entry : entries) {
    const std::size_t equals = entry.find('=');
    if (equals == 0 || equals == std::string_view::npos) continue;
    const std::string_view name = entry.substr(0, equals);
    std::string_view value = entry.substr(equals + 1);
    if (name.starts_with("ASSAY_")) continue;
    std::string preload;
    if (name == "LD_PRELOAD") {
      preload = without_assay_libraries(value);
      if (preload.empty()) continue;
      value = preload;
    }
    // The first of several wins, as in getenv().
    kept.try_emplace(std::string(name), redact_value(name, value));
  }
  return kept;
}

namespace {

using base::is_space;

constexpr std::size_t kNone = std::string_view::npos;

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.';
}

// On a command line KEY and the like often mean something else (`sort --key name`), and a stage
// with a redacted argument cannot be run again: a plain short word is kept.
bool is_plain(std::string_view value) {
  if (is_number_or_bool(value) || value.starts_with('-')) return true;
  if (value.starts_with('/') || value.starts_with("./") || value.starts_with("~/")) return true;
  return value.size() < 16 &&
         std::none_of(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool must_redact(Secrecy secrecy, std::string_view value) {
  if (value.empty() || secrecy == Secrecy::kPublic) return false;
  if (secrecy == Secrecy::kMaybe) return !is_plain(value);
  // "$TOKEN" and "$(cat token)" refer to a secret without containing it.
  return !value.starts_with('$') && !value.starts_with("\"$");
}

// A published port of a container: "8080:80", "127.0.0.1:5432:5432/tcp".
bool is_port_mapping(std::string_view value) {
  if (value.ends_with("/tcp") || value.ends_with("/udp")) value.remove_suffix(4);
  return value.find_first_not_of("0123456789.:-") == kNone;
}

class Redactor {
 public:
  std::string argument(std::string_view word) {
    const bool is_script = std::exchange(next_is_script_, false);
    if (word.find_first_of(" \t\n") == kNone || pending()) return single(word);
    // "--password=two words" is one value; "PASSWORD=one command" after -c is not.
    if (!is_script && has_secret_name(word)) return single(word);
    return script(redact_json_values(redact_pem(word)));
  }

 private:
  [[nodiscard]] bool pending() const { return next_ != Secrecy::kPublic || next_part_; }

  // Each part between spaces is handled as a separate argument; quoted parts stay together.
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
      const Secrecy assigned = assigned_.value_or(Secrecy::kPublic);
      assigned_.reset();
      if (part == "=" || part == ":=") assigned_ = secrecy_of_name(before);
      if (announces_secret(before, text)) next_ = Secrecy::kMaybe;
      before = part;
      // token = "x"
      if (const std::size_t close = closing_quote(part);
          close > 1 && must_redact(assigned, part.substr(1, close - 1))) {
        out += part.front() + std::string(kRedacted) + std::string(part.substr(close));
        continue;
      }
      const bool quoted = part.size() > 2 && part.front() == part.back() &&
                          (part.front() == '"' || part.front() == '\'');
      if (quoted) {
        out += part.front();
        out += argument(part.substr(1, part.size() - 2));
        out += part.back();
      } else {
        out += with_quoted_script(part);
      }
    }
    // A script's last option does not take its value from the next argument of the command.
    next_ = Secrecy::kPublic;
    next_part_.reset();
    assigned_.reset();
    return out;
  }

  // os.system('mysql -pX db'), -H'Authorization: X': what is quoted is handled by itself, unless it
  // is a secret as a whole.
  std::string with_quoted_script(std::string_view part) {
    const std::size_t begin = part.find_first_of("'\"");
    const std::size_t end = begin == kNone ? kNone : part.find(part[begin], begin + 1);
    if (end == kNone || pending() || has_secret_name(part)) return single(part);
    const std::string_view inner = part.substr(begin + 1, end - begin - 1);
    const auto known = secret_option_of(client_, verb_, part);
    if (inner.find_first_of(" \t\n") == kNone || (known && known->value)) return single(part);
    std::string out = single(part.substr(0, begin));
    out += part[begin] + argument(inner) + part[end];
    return end + 1 < part.size() ? out + with_quoted_script(part.substr(end + 1)) : out;
  }

  // Whether a secret follows: "Bearer x", and "machine h login u password x" of .netrc.
  static bool announces_secret(std::string_view word, std::string_view text) {
    if (word == "Bearer" || word == "bearer") return true;
    return word == "password" && text.find("login ") != kNone;
  }

  // The position of the closing quote of a quoted part; 0: it is not quoted, or not closed.
  static std::size_t closing_quote(std::string_view part) {
    if (part.empty() || (part[0] != '"' && part[0] != '\'')) return 0;
    const std::size_t close = part.find(part[0], 1);
    return close == kNone ? 0 : close;
  }

  std::string single(std::string_view word) {
    const Secrecy secrecy = std::exchange(next_, Secrecy::kPublic);
    const auto part = std::exchange(next_part_, std::nullopt);
    if (must_redact(secrecy, word) && !word.starts_with('-')) return std::string(kRedacted);
    if (part) return redact_part(*part, word);
    if (auto known = secret_option(word)) return *std::move(known);
    remember_client(word);
    // `aws configure set aws_secret_access_key X`
    if (std::exchange(after_set_, word == "set") && secrecy_of_name(word) == Secrecy::kSecret) {
      next_ = Secrecy::kSecret;
    }
    next_is_script_ = word.starts_with('-') && !word.starts_with("--") && word.ends_with('c');
    if (word.starts_with('-') && word.find('=') == kNone) next_ = secrecy_of_option(word);
    if (const auto header = header_value(word)) {
      return std::string(word.substr(0, *header)) + std::string(kRedacted);
    }
    return redact_patterns(redact_json_values(redact_named_values(word)));
  }

  // "--use-auth-token train.py" is a switch and a program, not a token.
  static Secrecy secrecy_of_option(std::string_view option) {
    const Secrecy secrecy = secrecy_of_name(option);
    option.remove_prefix(std::min(option.find_first_not_of('-'), option.size()));
    for (const std::string_view verb :
         {"no", "use", "with", "enable", "disable", "allow", "skip"}) {
      if (option.starts_with(verb) && secrecy == Secrecy::kSecret) return Secrecy::kMaybe;
    }
    return secrecy;
  }

  static bool has_secret_name(std::string_view word) {
    const std::string_view name = word.substr(0, word.find('='));
    return name.size() < word.size() && std::all_of(name.begin(), name.end(), is_name_char) &&
           secrecy_of_name(name) == Secrecy::kSecret;
  }

  // The secret part of a client's value. References to variables contain no secret.
  std::string redact_part(SecretPart part, std::string_view value) const {
    if (in_container_ && is_port_mapping(value)) return std::string(value);
    std::size_t begin = 0;
    std::size_t end = value.size();
    if (part == SecretPart::kAfterColon) {
      if (is_number_or_bool(value)) return std::string(value);
      begin = value.find(':');
    } else if (part == SecretPart::kAfterComma) {
      begin = value.find(',');
    } else if (part == SecretPart::kAfterPercent) {
      begin = value.find('%');
    } else if (part == SecretPart::kAfterSlash) {
      begin = value.find('/');
      end = std::min(value.find('@'), value.size());
    }
    if (begin == kNone || begin >= end) return std::string(value);
    if (part != SecretPart::kWhole) ++begin;
    if (!must_redact(Secrecy::kSecret, value.substr(begin, end - begin))) return std::string(value);
    return std::string(value.substr(0, begin)) + std::string(kRedacted) +
           std::string(value.substr(end));
  }

  std::optional<std::string> secret_option(std::string_view word) {
    // "-pX" in a list: ["mysql", "-pX"]
    const std::size_t lead = std::min(word.find_first_not_of("'\"([{,"), word.size());
    const std::string_view option = word.substr(lead);
    constexpr std::string_view kPassphrase = "pass:";  // openssl's: -passin pass:X
    if (option.starts_with(kPassphrase) && option.size() > kPassphrase.size()) {
      return std::string(word.substr(0, lead)) + std::string(kPassphrase) +
             redact_part(SecretPart::kWhole, option.substr(kPassphrase.size()));
    }
    const auto known = secret_option_of(client_, verb_, option);
    if (!known) return std::nullopt;
    if (!known->value) {
      next_part_ = known->part;
      return std::string(word);
    }
    std::string_view value = option.substr(*known->value);
    const std::size_t quote = lead > 0 ? value.find(word[lead - 1]) : kNone;
    const std::string_view behind =
        quote == kNone ? std::string_view() : value.substr(quote, value.size());
    value = value.substr(0, quote);
    return std::string(word.substr(0, lead)) + std::string(option.substr(0, *known->value)) +
           redact_part(known->part, value) + std::string(behind);
  }

  void remember_client(std::string_view word) {
    const std::string_view file = word.substr(word.rfind('/') + 1);
    if (file == "docker" || file == "podman" || file == "nerdctl") in_container_ = true;
    if (const std::string_view client = known_client(word); !client.empty()) {
      client_ = client;
      verb_ = {};
      wrapper_ = client == "sshpass";
    } else if (is_verb_of(client_, word)) {
      verb_ = word;
    } else if (wrapper_ && !word.starts_with('-')) {
      client_ = {};  // sshpass -p X ssh -p 22
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
    if (!must_redact(secrecy_of_name(name), word.substr(value))) return std::nullopt;
    return value;
  }

  // NAME=VALUE: to the end if the argument begins with it, else up to the next separator.
  static std::string redact_named_values(std::string_view word) {
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
      const bool hidden = must_redact(secrecy_of_name(word.substr(begin, equals - begin)),
                                      word.substr(equals + 1, end - equals - 1));
      out += word.substr(at, equals + 1 - at);
      if (hidden) out += kRedacted;
      at = hidden ? end : equals + 1;
    }
    out += word.substr(at);
    return out;
  }

  // {"name": "value"}
  static std::string redact_json_values(std::string_view word) {
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
      if (end != kNone && must_redact(secrecy_of_name(word.substr(begin, colon - begin)),
                                      word.substr(value, end - value))) {
        out += kRedacted;
        at = end;
      }
    }
    out += word.substr(at);
    return out;
  }

  std::optional<Secrecy> assigned_;      // after NAME =
  Secrecy next_ = Secrecy::kPublic;      // of the next argument, by the option before it
  std::optional<SecretPart> next_part_;  // of the next argument, by a client's option
  bool next_is_script_ = false;          // sh -c
  std::string_view client_;
  std::string verb_;
  bool wrapper_ = false;       // the client starts another program
  bool in_container_ = false;  // docker: -p is a port, whatever the container is called
  bool after_set_ = false;
};

}  // namespace

std::vector<std::string> redact_arguments(std::span<const std::string> arguments) {
  Redactor redactor;
  std::vector<std::string> kept;
  kept.reserve(arguments.size());
  for (const std::string& one : arguments) kept.push_back(redactor.argument(one));
  return kept;
}

std::string redact_joined_arguments(std::string_view arguments) {
  Redactor redactor;
  std::string kept;
  for (std::size_t begin = 0; begin <= arguments.size();) {
    const std::size_t end = std::min(arguments.find('\0', begin), arguments.size());
    if (begin > 0) kept += '\0';
    kept += redactor.argument(arguments.substr(begin, end - begin));
    begin = end + 1;
  }
  return kept;
}

}  // namespace assay::lineage
