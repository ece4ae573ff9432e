#include "lineage/redirects.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/unique_fd.h"

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

int open_flags(const Redirect& redirect) {
  if (!redirect.writes) return O_RDONLY;
  return O_WRONLY | O_CREAT | (redirect.appends ? O_APPEND : O_TRUNC);
}

base::Result<void> take_redirects(std::span<const Redirect> redirects) {
  std::vector<base::UniqueFd> opened(redirects.size());
  // First those that are read: if one is not there, nothing has been cut.
  for (const bool writes : {false, true}) {
    for (std::size_t i = 0; i < redirects.size(); ++i) {
      const Redirect& one = redirects[i];
      if (one.writes != writes) continue;
      const auto same =
          std::find_if(redirects.begin(), redirects.end(), [&](const Redirect& other) {
            return other.writes && one.writes && other.path == one.path;
          });
      const auto first = static_cast<std::size_t>(same - redirects.begin());
      if (same != redirects.end() && first < i) {
        opened[i].reset(::fcntl(opened[first].get(), F_DUPFD_CLOEXEC, 3));
      } else {
        opened[i].reset(::open(one.path.c_str(), open_flags(one) | O_CLOEXEC, 0666));
      }
      if (!opened[i].valid()) {
        return base::fail(base::system_error(one.path, "the step's file cannot be opened", errno));
      }
    }
  }
  for (std::size_t i = 0; i < redirects.size(); ++i) {
    ::dup2(opened[i].get(), redirects[i].descriptor);
  }
  return {};
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
