#include "lineage/redact/diff.h"

#include <algorithm>
#include <array>

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

std::string redact_diff(std::string diff, std::vector<std::string>& left_out) {
  std::string out;
  std::string file;
  bool in_key = false;
  bool changed = false;
  for (std::string_view rest = diff; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const bool header = line.starts_with("+++ ");
    if (header) file = line.substr(line.find('/') + 1);
    std::string kept(line);
    if (!header && line.starts_with('+')) {
      in_key = in_key || (line.find(kKeyBegins) != line.npos && line.find("PRIVATE") != line.npos);
      const std::string text =
          in_key ? std::string(kRedacted) : redact_known_patterns(line.substr(1));
      if (line.find(kKeyEnds) != line.npos) in_key = false;
      if (text != line.substr(1)) {
        kept = "+" + text;
        changed = true;
        std::string note = file + " (secrets in it were redacted)";
        if (left_out.empty() || left_out.back() != note) left_out.push_back(std::move(note));
      }
    } else {
      in_key = false;
    }
    out += kept;
    if (!rest.empty() || diff.ends_with('\n')) out += '\n';
  }
  return changed ? out : diff;
}

}  // namespace assay::lineage
