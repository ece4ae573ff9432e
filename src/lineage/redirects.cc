#include "lineage/redirects.h"

#include <fcntl.h>
#include <unistd.h>

namespace assay::lineage {

std::vector<std::string> redirects_of(std::span<const collect::Inherited> files) {
  std::vector<std::string> texts;
  for (const collect::Inherited& file : files) {
    if (file.descriptor > STDERR_FILENO || file.path.empty()) continue;
    const int flags = ::fcntl(file.descriptor, F_GETFL);
    const bool writes = file.descriptor != STDIN_FILENO && file.writable;
    if (!writes && !file.readable) continue;
    texts.push_back(to_text({.descriptor = file.descriptor,
                             .writes = writes,
                             .appends = writes && flags >= 0 && (flags & O_APPEND) != 0,
                             .path = file.path}));
  }
  return texts;
}

std::string to_text(const Redirect& redirect) {
  const char* sign = !redirect.writes ? "<" : redirect.appends ? ">>" : ">";
  return std::to_string(redirect.descriptor) + sign + redirect.path;
}

std::optional<Redirect> parse_redirect(std::string_view text) {
  if (text.size() < 3 || text[0] < '0' || text[0] > '2') return std::nullopt;
  Redirect redirect{.descriptor = text[0] - '0', .path = ""};
  text.remove_prefix(1);
  redirect.writes = text[0] == '>';
  if (!redirect.writes && text[0] != '<') return std::nullopt;
  redirect.appends = text.starts_with(">>");
  text.remove_prefix(redirect.appends ? 2 : 1);
  if (!text.starts_with('/')) return std::nullopt;
  redirect.path = text;
  return redirect;
}

std::vector<Redirect> parse_redirects(std::span<const std::string> texts) {
  std::vector<Redirect> redirects;
  for (const std::string& text : texts) {
    if (auto redirect = parse_redirect(text)) redirects.push_back(*std::move(redirect));
  }
  return redirects;
}

}  // namespace assay::lineage
