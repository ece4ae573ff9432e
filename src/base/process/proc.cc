#include "base/process/proc.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "base/file.h"
#include "base/number.h"

namespace assay::base {
namespace {

// As proc(5) counts them.
constexpr int kState = 3;
constexpr int kParent = 4;
constexpr int kUserTicks = 14;
constexpr int kSystemTicks = 15;
constexpr int kChildrenSystemTicks = 17;
constexpr int kStartTicks = 22;
constexpr int kResidentPages = 24;

// Leaves `number` as it is if the field is none.
template <typename Number>
bool read_number(std::string_view field, Number& number) {
  const auto parsed = parse_number<Number>(field);
  if (parsed) number = *parsed;
  return parsed.has_value();
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

std::vector<std::string> arguments_in(const std::string& file, Bytes limit) {
  std::vector<std::string> arguments;
  const auto text = read_file(file, limit);
  for (std::size_t from = 0; text && from < text->size();) {
    const std::size_t end = std::min(text->find('\0', from), text->size());
    arguments.push_back(text->substr(from, end - from));
    from = end + 1;
  }
  return arguments;
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
  bool has_start = false;
  for (int at = kState; text.starts_with(' '); ++at) {
    text.remove_prefix(1);
    const std::string_view field = text.substr(0, text.find_first_of(" \n"));
    text.remove_prefix(field.size());
    if (at == kState && field.size() == 1) out.state = field.front();
    if (at == kParent && !read_number(field, out.parent)) return std::nullopt;
    std::int64_t ticks = 0;
    if (at >= kUserTicks && at <= kChildrenSystemTicks && read_number(field, ticks)) {
      (at <= kSystemTicks ? out.cpu_ticks : out.children_cpu_ticks) += ticks;
    }
    if (at == kStartTicks) {
      if (!read_number(field, out.start_ticks)) return std::nullopt;
      has_start = true;
    }
    if (at == kResidentPages) {
      read_number(field, out.resident_pages);
      break;
    }
  }
  return has_start ? std::optional(out) : std::nullopt;
}

std::optional<ProcessStat> process_stat(pid_t process) {
  const std::string path = "/proc/" + std::to_string(process) + "/stat";
  std::array<char, 4096> buffer;
  return parse_process_stat(read_proc_file(path.c_str(), buffer));
}

std::vector<std::string> process_arguments(pid_t process, Bytes limit) {
  return arguments_in("/proc/" + std::to_string(process) + "/cmdline", limit);
}

// Not by number: where /proc is that of another namespace, this process has another one in it.
std::vector<std::string> own_arguments() {
  return arguments_in("/proc/self/cmdline", kLongestCommandLine);
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
