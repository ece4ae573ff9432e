#include "base/process/proc.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

namespace assay::base {
namespace {

// As proc(5) counts them.
constexpr int kState = 3;
constexpr int kParent = 4;
constexpr int kStartTicks = 22;

template <typename Number>
bool parse_whole(std::string_view field, Number& number) {
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), number);
  return error == std::errc() && end == field.data() + field.size();
}

// "VmRSS:	    1234 kB"
std::int64_t field_bytes(std::string_view status, std::string_view key) {
  const std::size_t at = status.find(key);
  if (at == std::string_view::npos) return 0;
  std::string_view rest = status.substr(at + key.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  std::int64_t kib = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), kib);
  return kib * 1024;
}

}  // namespace

std::string_view read_proc_file(const char* path, std::span<char> buffer) {
  const UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return {};
  const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
  return {buffer.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
}

std::optional<ProcessStat> parse_process_stat(std::string_view text) {
  // The second field is the program's name in parentheses and may hold anything, spaces and
  // parentheses included. No later field does.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos) return std::nullopt;
  text.remove_prefix(name_end + 1);
  ProcessStat out;
  for (int at = kState; text.starts_with(' '); ++at) {
    text.remove_prefix(1);
    const std::string_view field = text.substr(0, text.find_first_of(" \n"));
    text.remove_prefix(field.size());
    if (at == kState && field.size() == 1) out.state = field.front();
    if (at == kParent && !parse_whole(field, out.parent)) return std::nullopt;
    if (at != kStartTicks) continue;
    return parse_whole(field, out.start_ticks) ? std::optional(out) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<ProcessStat> process_stat(pid_t process) {
  const std::string path = "/proc/" + std::to_string(process) + "/stat";
  std::array<char, 4096> buffer;
  return parse_process_stat(read_proc_file(path.c_str(), buffer));
}

MemorySize parse_memory_size(std::string_view status) {
  return {field_bytes(status, "\nVmRSS:"), field_bytes(status, "\nVmHWM:")};
}

ProcessMemory::ProcessMemory() : status_(::open("/proc/self/status", O_RDONLY | O_CLOEXEC)) {}

MemorySize ProcessMemory::now() const {
  char text[4096];
  const ssize_t size = status_.valid() ? ::pread(status_.get(), text, sizeof text, 0) : 0;
  return size > 0 ? parse_memory_size({text, static_cast<std::size_t>(size)}) : MemorySize{};
}

}  // namespace assay::base
