#include "lineage/record/redirects.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "base/unique_fd.h"
#include "hash/file.h"

namespace assay::lineage {
namespace {

// Whether the command that inherits this descriptor is the first to write to its file.
bool is_first_writer(int descriptor) {
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (flags >= 0 && (flags & O_APPEND) != 0) return false;
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return false;
  return status.st_size == 0 && ::lseek(descriptor, 0, SEEK_CUR) == 0;
}

base::Error not_redirected(const Redirect& redirect, std::string what,
                           std::string_view instead = "is not redirected") {
  return base::failed_error(
      redirect.path, std::move(what),
      fmt::format("the stage's {} {}", stream_name(redirect.descriptor), instead));
}

}  // namespace

std::vector<std::string> inherited_redirects(std::span<const collect::Inherited> files) {
  std::vector<std::string> texts;
  for (const collect::Inherited& file : files) {
    if (file.descriptor > STDERR_FILENO || file.path.empty()) continue;
    const bool writes = file.descriptor != STDIN_FILENO && file.writable;
    if (!writes && !file.readable) continue;
    texts.push_back(to_text({.descriptor = file.descriptor,
                             .writes = writes,
                             .appends = writes && !is_first_writer(file.descriptor),
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

base::Result<base::UniqueFd> open_output(const Redirect& redirect) {
  base::UniqueFd file(::open(redirect.path.c_str(), open_flags(redirect) | O_CLOEXEC, 0666));
  if (file.valid()) return file;
  return base::fail(
      not_redirected(redirect, base::system_error("", "cannot be opened", errno).what));
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

namespace {

bool is_same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool is_regular_file(int descriptor, struct stat& status) {
  return ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

// The standard output or error of this process that is already this file; -1: none.
int stream_of(const struct stat& file, int preferred) {
  for (const int descriptor : {preferred, STDOUT_FILENO, STDERR_FILENO}) {
    struct stat stream {};
    if (is_regular_file(descriptor, stream) && is_same_file(stream, file)) return descriptor;
  }
  return -1;
}

// Whether truncating it loses nothing that another program wrote.
bool may_be_truncated(const Redirect& redirect, const struct stat& file) {
  if (file.st_size == 0) return true;
  const auto hashed = hash::hash_file(redirect.path);
  return redirect.left && hashed && !hashed->changed && hashed->digest == *redirect.left;
}

class RedirectApplier {
 public:
  explicit RedirectApplier(std::span<const Redirect> redirects)
      : redirects_(redirects), opened_(redirects.size()) {}

  base::Result<std::vector<std::string>> apply() {
    // Inputs first: if one is missing, nothing has been truncated.
    for (std::size_t i = 0; i < redirects_.size(); ++i) {
      const Redirect& one = redirects_[i];
      if (one.writes) {
        struct stat now {};
        struct stat file {};
        const bool there = ::stat(one.path.c_str(), &file) == 0;
        const bool given = is_regular_file(one.descriptor, now);
        // `run @1 > new`: the redirection of this process has precedence.
        if (given && !(there && is_same_file(now, file))) {
          skip(one, not_redirected(one, "is not written", "goes to the file you redirected it to"));
        }
        continue;
      }
      opened_[i].reset(::open(one.path.c_str(), O_RDONLY | O_CLOEXEC));
      if (!opened_[i].valid()) {
        return base::fail(base::system_error(one.path, "the stage's file cannot be opened", errno));
      }
    }
    for (std::size_t i = 0; i < redirects_.size(); ++i) {
      if (redirects_[i].writes && !skipped_.contains(redirects_[i].path)) open_stream(i);
    }
    for (std::size_t i = 0; i < redirects_.size(); ++i) {
      if (opened_[i].valid()) ::dup2(opened_[i].get(), redirects_[i].descriptor);
    }
    return std::move(messages_);
  }

 private:
  void open_stream(std::size_t i) {
    const Redirect& one = redirects_[i];
    const auto same =
        std::find_if(redirects_.begin(), redirects_.end(),
                     [&](const Redirect& other) { return other.writes && other.path == one.path; });
    const auto first = static_cast<std::size_t>(same - redirects_.begin());
    if (first < i) {  // `> log 2>&1`: opened twice, they would overwrite each other
      opened_[i].reset(::fcntl(opened_[first].get(), F_DUPFD_CLOEXEC, 3));
      return;
    }
    struct stat file {};
    const bool there = ::stat(one.path.c_str(), &file) == 0;
    if (const int stream = there ? stream_of(file, one.descriptor) : -1; stream >= 0) {
      opened_[i].reset(::fcntl(stream, F_DUPFD_CLOEXEC, 3));
      return;
    }
    if (there && !one.appends && !may_be_truncated(one, file)) {
      return skip(one, not_redirected(one, "differs from what the stage left there"));
    }
    if (auto output = open_output(one)) {
      opened_[i] = *std::move(output);
    } else {
      skip(one, output.error());
    }
  }

  void skip(const Redirect& one, const base::Error& why) {
    if (skipped_.insert(one.path).second) messages_.push_back(why.line());
  }

  std::span<const Redirect> redirects_;
  std::vector<base::UniqueFd> opened_;
  std::set<std::string> skipped_;  // files that are not opened
  std::vector<std::string> messages_;
};

}  // namespace

std::string_view stream_name(int descriptor) {
  return descriptor == STDOUT_FILENO ? "standard output" : "standard error";
}

base::Result<std::vector<std::string>> apply_redirects(std::span<const Redirect> redirects) {
  return RedirectApplier(redirects).apply();
}

}  // namespace assay::lineage
