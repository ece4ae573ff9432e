#include "lineage/export/common.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <span>

#include "base/utf8.h"
#include "base/version.h"
#include "hash/blake3.h"
#include "lineage/graph/dag_view.h"
#include "lineage/redact/secret_pattern.h"

namespace assay::lineage {
namespace {

// RFC 3986: unreserved characters, and others that are allowed in a path.
constexpr std::string_view kPathCharacters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/!$&'()*+,;=:@";

// Escapes the bytes that a URI cannot contain; existing escapes are kept.
std::string escaped_uri(std::string_view text) {
  const std::size_t slashes = text.find("://");
  const std::size_t authority_end =
      slashes == std::string_view::npos ? 0 : std::min(text.find('/', slashes + 3), text.size());
  const auto is_hex = [&](std::size_t i) {
    return i < text.size() && std::isxdigit(static_cast<unsigned char>(text[i])) != 0;
  };
  std::string uri;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const bool kept = c == '?' || c == '#' || (c == '%' && is_hex(at + 1) && is_hex(at + 2)) ||
                      ((c == '[' || c == ']') && at < authority_end);
    uri += kept ? std::string(1, c) : percent_encoded(text.substr(at, 1), kPathCharacters);
  }
  return uri;
}

}  // namespace

std::string file_uri(std::string_view absolute_path) {
  return "file://" + percent_encoded(absolute_path, kPathCharacters);
}

std::string crate_uri(std::string_view path, std::string_view root) {
  const bool inside = !root.empty() && path.size() > root.size() + 1 && path.starts_with(root) &&
                      path[root.size()] == '/';
  if (!inside) return file_uri(path);
  // A colon in the first component would be read as a scheme.
  std::string relative = percent_encoded(path.substr(root.size() + 1), kPathCharacters);
  const std::size_t colon = relative.find(':');
  return colon < relative.find('/') ? "./" + relative : relative;
}

std::string text_path(std::string_view absolute_path) {
  return base::is_utf8(absolute_path) ? std::string(absolute_path) : file_uri(absolute_path);
}

std::string content_uri(const hash::Digest& digest) {
  return "urn:blake3:" + digest.hex();
}

std::string source_uri(const store::Git& git) {
  const std::string remote = strip_credentials(git.remote);
  if (remote.empty()) return file_uri(git.root);
  // The forms that git distinguishes: a URL; HELPER::ADDRESS; HOST:PATH, as in scp; a path.
  const std::size_t bracket = remote.find("]:");
  const std::size_t colon = bracket < remote.find('/') ? bracket + 1 : remote.find(':');
  if (remote.find("://") != std::string::npos) return escaped_uri(remote);
  if (colon < remote.find('/')) {
    if (remote.substr(colon).starts_with("::")) return escaped_uri(remote);
    const bool rooted = remote.substr(colon + 1).starts_with('/');
    return escaped_uri("ssh://" + remote.substr(0, colon) + (rooted ? "" : "/") +
                       remote.substr(colon + 1));
  }
  return file_uri((std::filesystem::path(git.root) / remote).lexically_normal().string());
}

std::string uuid_of(const store::RunRecord& run) {
  const std::string name = "assay run " + run.uid;
  hash::Digest digest = hash::blake3(std::as_bytes(std::span(name)));
  digest.bytes[6] = static_cast<std::uint8_t>((digest.bytes[6] & 0x0fU) | 0x80U);  // version 8
  digest.bytes[8] = static_cast<std::uint8_t>((digest.bytes[8] & 0x3fU) | 0x80U);  // RFC 9562
  const std::string hex = digest.hex();
  return fmt::format("{}-{}-{}-{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 4),
                     hex.substr(16, 4), hex.substr(20, 12));
}

std::int64_t ended_unix_ns(const store::RunRecord& run) {
  return run.started_unix_ns + std::llround(run.duration_s * 1e9);
}

std::string title_of(const store::RunRecord& run) {
  if (!run.name.empty()) return run.name;
  if (run.stage > 0) return fmt::format("stage {}", run.stage);
  constexpr std::size_t kColumns = 60;
  return run.command.empty() ? "run"
                             : base::shortened(base::printable(command_text(run)), kColumns);
}

std::string failure_text(const store::RunRecord& run) {
  if (run.status == store::RunStatus::kInterrupted) return "interrupted";
  if (run.signal) return fmt::format("signal {}", *run.signal);
  return fmt::format("exit code {}", run.exit_code.value_or(0));
}

std::string producer_uri() {
  return fmt::format("urn:assay:{}", base::version().release);
}

bool exists_after(const store::Output& output) {
  return output.status != store::OutputStatus::kDeleted;
}

}  // namespace assay::lineage
