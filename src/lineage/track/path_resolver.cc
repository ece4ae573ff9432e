#include "lineage/track/path_resolver.h"

#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <memory>

namespace assay::lineage {
namespace {

constexpr std::size_t kMostKnown = 100'000;

}  // namespace

ResolvedPath PathResolver::resolve(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (path.empty() || path.front() != '/' || slash + 1 == path.size()) return {};
  const std::string_view name = path.substr(slash + 1);
  if (name == "." || name == ".." || name.size() > NameArena::kLongest) return {};
  const std::string_view folder = path.substr(0, slash);
  if (last_ != nullptr && last_->first == folder) return {last_->second, name};
  auto found = known_.find(folder);
  if (found == known_.end()) {
    if (known_.size() >= kMostKnown) forget();
    std::string text(folder);
    const FolderId id = resolve_folder(text);
    found = known_.emplace(std::move(text), id).first;
  }
  last_ = &*found;
  return {found->second, name};
}

ResolvedPath PathResolver::resolve_again(std::string_view path) {
  const ResolvedPath before = resolve(path);
  if (before.folder == 0) return before;
  const auto found = known_.find(path.substr(0, path.rfind('/')));
  found->second = resolve_folder(found->first);
  return {found->second, before.name};
}

ResolvedPath PathResolver::from_canonical(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return {paths_.folder(std::string(path.substr(0, slash))), path.substr(slash + 1)};
}

void PathResolver::forget() {
  known_.clear();
  last_ = nullptr;
}

FolderId PathResolver::resolve_folder(const std::string& folder) {
  const std::unique_ptr<char, void (*)(void*)> real(
      ::realpath(folder.empty() ? "/" : folder.c_str(), nullptr), std::free);
  std::string canonical = real ? std::string(real.get()) : normalized(folder);
  if (canonical == "/") canonical.clear();
  return paths_.folder(canonical);
}

bool link_target(std::string_view path, std::string& target) {
  std::string at(path);
  bool followed = false;
  // The kernel's limit of nested links.
  for (int i = 0; i < 40; ++i) {
    char text[PATH_MAX];
    const ssize_t length = ::readlink(at.c_str(), text, sizeof text);
    if (length <= 0) break;
    const std::string_view next(text, static_cast<std::size_t>(length));
    at = next.front() == '/' ? std::string(next)
                             : at.substr(0, at.rfind('/') + 1) + std::string(next);
    followed = true;
  }
  if (followed) target = at;
  return followed;
}

std::string normalized(std::string_view folder) {
  std::string tidy;
  while (!folder.empty()) {
    const std::size_t slash = std::min(folder.find('/'), folder.size());
    const std::string_view part = folder.substr(0, slash);
    folder.remove_prefix(std::min(slash + 1, folder.size()));
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      tidy.resize(tidy.empty() ? 0 : tidy.rfind('/'));
    } else {
      tidy.append(1, '/').append(part);
    }
  }
  return tidy;
}

}  // namespace assay::lineage
