// take_redirects() of redirects.h: which of a stage's files are opened again, and which are better
// left alone.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "base/unique_fd.h"
#include "hash/file.h"
#include "lineage/record/redirects.h"

namespace assay::lineage {
namespace {

bool is_same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool is_regular_file(int descriptor, struct stat& status) {
  return ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

// The standard output or error of this process that is this file already; -1: none.
int stream_of(const struct stat& file, int preferred) {
  for (const int descriptor : {preferred, STDOUT_FILENO, STDERR_FILENO}) {
    struct stat stream {};
    if (is_regular_file(descriptor, stream) && is_same_file(stream, file)) return descriptor;
  }
  return -1;
}

// Nobody else's words are lost if it is cut.
bool may_be_cut(const Redirect& redirect, const struct stat& file) {
  if (file.st_size == 0) return true;
  const auto hashed = hash::hash_file(redirect.path);
  return redirect.left && hashed && !hashed->changed && hashed->digest == *redirect.left;
}

std::string_view stream_name(int descriptor) {
  return descriptor == STDOUT_FILENO ? "standard output" : "standard error";
}

// The files of a stage, on their way to this process.
class Taking {
 public:
  explicit Taking(std::span<const Redirect> redirects)
      : redirects_(redirects), opened_(redirects.size()) {}

  base::Result<std::vector<std::string>> take() {
    // First those that are read: if one is not there, nothing has been cut.
    for (std::size_t i = 0; i < redirects_.size(); ++i) {
      const Redirect& one = redirects_[i];
      if (one.writes) {
        struct stat now {};
        struct stat file {};
        const bool there = ::stat(one.path.c_str(), &file) == 0;
        const bool given = is_regular_file(one.descriptor, now);
        // `run @1 > new`: both streams of the stage's file stay what they are.
        if (given && !(there && is_same_file(now, file))) {
          leave(one, "is left as it is", "goes to the file that you gave");
        }
        continue;
      }
      opened_[i].reset(::open(one.path.c_str(), O_RDONLY | O_CLOEXEC));
      if (!opened_[i].valid()) {
        return base::fail(base::system_error(one.path, "the stage's file cannot be opened", errno));
      }
    }
    for (std::size_t i = 0; i < redirects_.size(); ++i) {
      if (redirects_[i].writes && !kept_.contains(redirects_[i].path)) open_output(i);
    }
    for (std::size_t i = 0; i < redirects_.size(); ++i) {
      if (opened_[i].valid()) ::dup2(opened_[i].get(), redirects_[i].descriptor);
    }
    return std::move(lines_);
  }

 private:
  void open_output(std::size_t i) {
    const Redirect& one = redirects_[i];
    const auto same =
        std::find_if(redirects_.begin(), redirects_.end(),
                     [&](const Redirect& other) { return other.writes && other.path == one.path; });
    const auto first = static_cast<std::size_t>(same - redirects_.begin());
    if (first < i) {  // `> log 2>&1`: two that are opened would write over each other
      opened_[i].reset(::fcntl(opened_[first].get(), F_DUPFD_CLOEXEC, 3));
      return;
    }
    struct stat file {};
    const bool there = ::stat(one.path.c_str(), &file) == 0;
    if (const int stream = there ? stream_of(file, one.descriptor) : -1; stream >= 0) {
      opened_[i].reset(::fcntl(stream, F_DUPFD_CLOEXEC, 3));
      return;
    }
    if (there && !one.appends && !may_be_cut(one, file)) {
      return leave(one, "holds something else than the stage left there");
    }
    opened_[i].reset(::open(one.path.c_str(), open_flags(one) | O_CLOEXEC, 0666));
    if (!opened_[i].valid()) leave(one, base::system_error("", "cannot be opened", errno).what);
  }

  void leave(const Redirect& one, std::string what, std::string_view goes = "stays yours") {
    if (!kept_.insert(one.path).second) return;
    lines_.push_back(
        base::failed_error(one.path, std::move(what),
                           fmt::format("the stage's {} {}", stream_name(one.descriptor), goes))
            .line());
  }

  std::span<const Redirect> redirects_;
  std::vector<base::UniqueFd> opened_;
  std::set<std::string> kept_;  // files that are left alone
  std::vector<std::string> lines_;
};

}  // namespace

base::Result<std::vector<std::string>> take_redirects(std::span<const Redirect> redirects) {
  return Taking(redirects).take();
}

}  // namespace assay::lineage
