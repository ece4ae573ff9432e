#include "lineage/redact/diff.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "lineage/redact/secret_pattern.h"

namespace assay::lineage {
namespace {

constexpr std::array<std::string_view, 13> kSecretNames = {
    ".env",      ".netrc",      ".pgpass",          ".npmrc", ".pypirc",
    ".htpasswd", "credentials", "credentials.json", "id_rsa", "id_dsa",
    "id_ecdsa",  "id_ed25519",  "kubeconfig"};
constexpr std::array<std::string_view, 6> kSecretExtensions = {".pem", ".key", ".p12",
                                                               ".pfx", ".jks", ".keystore"};
// `.env.example` is meant to be published.
constexpr std::array<std::string_view, 4> kSampleSuffixes = {"example", "sample", "template",
                                                             "dist"};

constexpr std::string_view kKeyBegins = "-----BEGIN ";
constexpr std::string_view kKeyEnds = "-----END ";

}  // namespace

bool is_secret_file(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const auto ends = [&](std::string_view end) { return name.ends_with(end); };
  if (std::ranges::any_of(kSampleSuffixes, ends)) return false;
  return std::ranges::find(kSecretNames, name) != kSecretNames.end() || name.starts_with(".env.") ||
         ends(".env") || std::ranges::any_of(kSecretExtensions, ends);
}

namespace {

// A line from the middle of a key whose beginning is not in the hunk.
bool is_key_line(std::string_view text) {
  constexpr std::size_t kLeast = 40;
  while (!text.empty() && base::is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && base::is_space(text.back())) text.remove_suffix(1);
  const auto in_base64 = [](char c) {
    return base::is_digit(c) || base::is_lower(c) || base::is_upper(c) || c == '+' || c == '/' ||
           c == '=';
  };
  return text.size() >= kLeast && std::ranges::all_of(text, in_base64) && looks_random(text);
}

// Processes the lines of a diff in order, keeping track of the current file and hunk.
class DiffRedactor {
 public:
  explicit DiffRedactor(DiffLines lines) : all_(lines == DiffLines::kAll) {}

  // The line as it may be kept.
  std::string line(std::string_view line) {
    if (!in_hunk_ && (line.starts_with("--- ") || line.starts_with("+++ "))) {
      read_name(line);
      return std::string(line);
    }
    const bool next_file = line.starts_with("diff --git ");
    if (next_file || line.starts_with("@@ ")) {
      if (next_file) secret_file_ = false;
      in_hunk_ = !next_file;
      in_key_ = false;
      // Behind the second "@@" git repeats a line of the file.
      const std::size_t shown = all_ && !next_file ? line.find(" @@", 2) : line.npos;
      if (shown == line.npos) return std::string(line);
      const std::size_t begin = std::min(shown + 3, line.size());
      return std::string(line.substr(0, begin)) + content(line.substr(begin));
    }
    const bool searched =
        line.starts_with('+') || (all_ && (line.starts_with('-') || line.starts_with(' ')));
    if (!searched) {
      if (!all_) in_key_ = false;
      return std::string(line);
    }
    return std::string(line.substr(0, 1)) + content(line.substr(1));
  }

  [[nodiscard]] const std::string& file() const { return file_; }

 private:
  void read_name(std::string_view line) {
    const std::string_view name = line.substr(4);
    if (name == "/dev/null") return;
    const std::size_t slash = name.find('/');
    file_ = name.substr(slash == name.npos ? 0 : slash + 1);
    // Names with unusual characters are quoted, and those with spaces end with a tab.
    std::string_view plain = file_;
    while (plain.ends_with('"') || plain.ends_with('\t')) plain.remove_suffix(1);
    secret_file_ = secret_file_ || (all_ && is_secret_file(plain));
  }

  std::string content(std::string_view text) {
    in_key_ = in_key_ || (text.find(kKeyBegins) != text.npos && text.find("PRIVATE") != text.npos);
    const bool whole = in_key_ || (secret_file_ && !text.empty()) || (all_ && is_key_line(text));
    if (text.find(kKeyEnds) != text.npos) in_key_ = false;
    return whole ? std::string(kRedacted) : redact_known_patterns(text);
  }

  bool all_;
  bool in_hunk_ = false;
  bool in_key_ = false;
  bool secret_file_ = false;
  std::string file_;
};

}  // namespace

std::string redact_diff(std::string diff, std::vector<std::string>& left_out, DiffLines lines) {
  std::string out;
  bool changed = false;
  DiffRedactor redactor(lines);
  for (std::string_view rest = diff; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::string kept = redactor.line(line);
    if (kept != line) {
      changed = true;
      std::string note = redactor.file() + " (secrets in it were redacted)";
      if (left_out.empty() || left_out.back() != note) left_out.push_back(std::move(note));
    }
    out += kept;
    if (!rest.empty() || diff.ends_with('\n')) out += '\n';
  }
  if (changed) return out;
  return diff;
}

}  // namespace assay::lineage
