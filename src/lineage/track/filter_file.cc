#include "lineage/track/filter_file.h"

#include <string_view>

#include "base/file.h"

namespace assay::lineage {
namespace {

constexpr base::Bytes kMostFilter{1 << 20};

std::string_view trimmed(std::string_view line) {
  while (!line.empty() && (line.back() == ' ' || line.back() == '\t' || line.back() == '\r')) {
    line.remove_suffix(1);
  }
  return line;
}

// As git has it, a leading slash is the folder of the file; what is elsewhere has two of them.
std::string from_here(std::string_view pattern) {
  if (pattern.starts_with("//")) return std::string(pattern.substr(1));
  if (pattern.starts_with('/')) return "." + std::string(pattern);
  return std::string(pattern);
}

}  // namespace

base::Result<std::vector<Filter::Choice>> read_filter_file(const std::filesystem::path& project) {
  const std::filesystem::path path = project / kFilterFile;
  std::error_code error;
  std::vector<Filter::Choice> out;
  if (!std::filesystem::exists(path, error)) return out;
  ASSAY_TRY(const std::string text, base::read_file(path, kMostFilter));
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = trimmed(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.empty() || line.front() == '#') continue;
    const bool keep = line.front() == '!';
    if (keep) line.remove_prefix(1);
    if (line.starts_with("\\#") || line.starts_with("\\!")) line.remove_prefix(1);
    if (!line.empty()) out.push_back({from_here(line), keep});
  }
  return out;
}

}  // namespace assay::lineage
