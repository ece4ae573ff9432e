// See file_tree.h.
#include "machine/file_tree.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/text.h"
#include "base/unique_fd.h"
#include "machine/parse.h"

namespace assay::machine {

namespace fs = std::filesystem;

FileTree::FileTree(const std::string& root) : root_(root) {
  while (root_.ends_with('/')) root_.pop_back();
}

std::optional<std::string> FileTree::read(const std::string& path, std::size_t limit) const {
  // O_NONBLOCK: opening a pipe in a fake tree must not hang.
  const base::UniqueFd fd(::open((root_ + path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return std::nullopt;
  }
  std::string text;
  char buffer[4096];
  while (text.size() < limit) {
    const ssize_t got = ::read(fd.get(), buffer, std::min(sizeof buffer, limit - text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    text.append(buffer, static_cast<std::size_t>(got));
  }
  return std::string(base::trim(text));
}

std::optional<int> FileTree::read_small(const std::string& path, int low, int high) const {
  const auto text = read(path);
  return text ? parse_small(*text, low, high) : std::nullopt;
}

std::vector<std::string> FileTree::list(const std::string& path) const {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(root_ + path, error), end; !error && at != end;
       at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool FileTree::exists(const std::string& path) const {
  std::error_code error;
  return fs::exists(root_ + path, error);
}

std::string FileTree::resolve(const std::string& path) const {
  std::error_code error;
  const fs::path real = fs::canonical(root_ + path, error);
  return error ? std::string() : real.string();
}

}  // namespace assay::machine
