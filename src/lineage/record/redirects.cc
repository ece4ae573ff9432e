#include "lineage/record/redirects.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <set>

#include "base/unique_fd.h"
#include "lineage/record/handed_down.h"
#include "store/streams.h"

namespace assay::lineage {
namespace {

// Whether the command that inherits this descriptor is the first to write to its file.
bool is_first_writer(int descriptor) {
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (flags >= 0 && (flags & O_APPEND) != 0) return false;
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return false;
  return status.st_size == 0 && !was_used(descriptor);
}

bool is_same_file(const struct stat& a, const struct stat& b) {
  return S_ISREG(a.st_mode) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool is_handed_down(const collect::Inherited& file, const OtherWriters& others) {
  if (is_handed_down_by(others.starter, file.descriptor)) return true;
  // The keeper prints this program's lines.
  if (others.assay && is_standard_error_of(::getppid(), file.descriptor)) return true;
  return std::ranges::any_of(others.repeated, [&](const Redirect& one) {
    return one.handed_down && one.path == file.path;
  });
}

}  // namespace

std::vector<std::string> inherited_redirects(std::span<const collect::Inherited> files,
                                             const OtherWriters& others) {
  std::vector<std::string> texts;
  for (const collect::Inherited& file : files) {
    if (file.descriptor > STDERR_FILENO || file.path.empty()) continue;
    const bool writes = file.descriptor != STDIN_FILENO && file.writable;
    if (!writes && !file.readable) continue;
    Redirect redirect{.descriptor = file.descriptor, .writes = writes, .path = file.path};
    if (writes) {
      redirect.handed_down = is_handed_down(file, others);
      redirect.appends =
          redirect.handed_down ? was_used(file.descriptor) : !is_first_writer(file.descriptor);
    }
    texts.push_back(to_text(redirect));
  }
  return texts;
}

std::string to_text(const Redirect& redirect) {
  const char* sign = !redirect.writes ? "<" : redirect.appends ? ">>" : ">";
  return std::to_string(redirect.descriptor) + sign +
         (redirect.handed_down ? store::kHandedDown : "") + redirect.path;
}

int open_flags(const Redirect& redirect) {
  if (!redirect.writes) return O_RDONLY;
  return O_WRONLY | O_CREAT | (redirect.appends ? O_APPEND : O_TRUNC);
}

base::Result<base::UniqueFd> open_output(const Redirect& redirect) {
  base::UniqueFd file(::open(redirect.path.c_str(), open_flags(redirect) | O_CLOEXEC, 0666));
  if (file.valid()) return file;
  const std::string what = base::system_error("", "cannot be opened", errno).what;
  const std::string_view stream = stream_name(redirect.descriptor);
  return base::fail(base::failed_error(
      redirect.path, what,
      redirect.is_log
          ? fmt::format("the stage's {} is not redirected", stream)
          : fmt::format("it is where the stage's {} goes; --here leaves that as it is", stream)));
}

std::optional<Redirect> parse_redirect(std::string_view text) {
  if (text.size() < 3 || text[0] < '0' || text[0] > '2') return std::nullopt;
  Redirect redirect{.descriptor = text[0] - '0', .path = ""};
  text.remove_prefix(1);
  redirect.writes = text[0] == '>';
  if (!redirect.writes && text[0] != '<') return std::nullopt;
  redirect.appends = text.starts_with(">>");
  text.remove_prefix(redirect.appends ? 2 : 1);
  redirect.handed_down = redirect.writes && text.starts_with(store::kHandedDown);
  if (redirect.handed_down) text.remove_prefix(1);
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

std::string_view stream_name(int descriptor) {
  return descriptor == STDOUT_FILENO ? "standard output" : "standard error";
}

namespace {

// The standard output or error of this process that is already the file at `path`; -1: none.
int stream_of(const std::string& path, int preferred) {
  struct stat file {};
  if (::stat(path.c_str(), &file) != 0) return -1;
  for (const int descriptor : {preferred, STDOUT_FILENO, STDERR_FILENO}) {
    struct stat stream {};
    if (::fstat(descriptor, &stream) == 0 && is_same_file(stream, file)) return descriptor;
  }
  return -1;
}

}  // namespace

base::Result<StageStreams> StageStreams::open(std::span<const Redirect> redirects) {
  StageStreams opened;
  // Inputs first: if one is missing, nothing has been truncated.
  for (const Redirect& one : redirects) {
    if (one.writes) continue;
    base::UniqueFd file(::open(one.path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.valid()) {
      return base::fail(base::system_error(one.path, "the stage's file cannot be opened", errno));
    }
    opened.streams_.emplace_back(one.descriptor, std::move(file));
  }
  std::map<std::string, int> outputs;  // opened twice, they would overwrite each other
  std::set<std::string> missing;
  for (const Redirect& one : redirects) {
    if (!one.writes) continue;
    const auto known = outputs.find(one.path);
    const int same = known != outputs.end() ? known->second : stream_of(one.path, one.descriptor);
    base::UniqueFd file;
    if (same >= 0) {
      file.reset(::fcntl(same, F_DUPFD_CLOEXEC, 3));
    } else if (auto output = open_output(one)) {
      file = *std::move(output);
    } else if (one.is_log) {
      if (missing.insert(one.path).second) opened.messages_.push_back(output.error().line());
      continue;
    } else {
      return base::fail(std::move(output).error());
    }
    outputs[one.path] = file.get();
    opened.streams_.emplace_back(one.descriptor, std::move(file));
  }
  return opened;
}

void StageStreams::use() {
  for (const auto& [descriptor, file] : streams_) ::dup2(file.get(), descriptor);
  streams_.clear();
}

}  // namespace assay::lineage
