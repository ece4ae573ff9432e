#include "lineage/record/redirects.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace assay::lineage {
namespace {

// Whether the command that gets this descriptor is the first to write to its file.
bool begins_it(int descriptor) {
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (flags >= 0 && (flags & O_APPEND) != 0) return false;
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return false;
  return status.st_size == 0 && ::lseek(descriptor, 0, SEEK_CUR) == 0;
}

}  // namespace

std::vector<std::string> redirects_of(std::span<const collect::Inherited> files) {
  std::vector<std::string> texts;
  for (const collect::Inherited& file : files) {
    if (file.descriptor > STDERR_FILENO || file.path.empty()) continue;
    const bool writes = file.descriptor != STDIN_FILENO && file.writable;
    if (!writes && !file.readable) continue;
    texts.push_back(to_text({.descriptor = file.descriptor,
                             .writes = writes,
                             .appends = writes && !begins_it(file.descriptor),
                             .path = file.path}));
  }
  return texts;
}

std::string to_text(const Redirect& redirect) {
  const char* sign = !redirect.writes ? "<" : redirect.appends ? ">>" : ">";
  return std::to_string(redirect.descriptor) + sign + redirect.path;
}

int open_flags(const Redirect& redirect) {
  if (!redirect.writes) return O_RDONLY;
  return O_WRONLY | O_CREAT | (redirect.appends ? O_APPEND : O_TRUNC);
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
