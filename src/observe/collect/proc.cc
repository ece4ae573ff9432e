#include "observe/collect/proc.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <string_view>

#include "base/unique_fd.h"

namespace assay::collect {
namespace {

using Buffer = std::array<char, 4096>;

// /proc files of this size come in one read.
std::string_view read_small(const std::string& path, Buffer& buffer) {
  const base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return {};
  const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
  return {buffer.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
}

// Field `index` of /proc/PID/stat, counted as proc(5) does. The second one is a name in parentheses
// that may itself hold spaces and parentheses.
std::uint64_t stat_field(pid_t process, int index) {
  Buffer buffer;
  std::string_view text = read_small("/proc/" + std::to_string(process) + "/stat", buffer);
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos) return 0;
  text.remove_prefix(name_end + 1);
  for (int at = 3; !text.empty(); ++at) {
    text.remove_prefix(1);
    const std::string_view field = text.substr(0, text.find(' '));
    if (at == index) {
      std::uint64_t value = 0;
      std::from_chars(field.data(), field.data() + field.size(), value);
      return value;
    }
    text.remove_prefix(field.size());
  }
  return 0;
}

}  // namespace

pid_t process_of(pid_t thread) {
  // Most threads are the first of their group, which is cheap to ask.
  if (::syscall(SYS_tgkill, thread, thread, 0) == 0) return thread;
  Buffer buffer;
  const std::string_view text = read_small("/proc/" + std::to_string(thread) + "/status", buffer);
  constexpr std::string_view kKey = "\nTgid:\t";
  const std::size_t at = text.find(kKey);
  if (at == std::string_view::npos) return thread;
  pid_t process = thread;
  std::from_chars(text.data() + at + kKey.size(), text.data() + text.size(), process);
  return process;
}

pid_t parent_of(pid_t process) {
  return static_cast<pid_t>(stat_field(process, 4));
}

std::uint64_t start_ticks_of(pid_t process) {
  return stat_field(process, 22);
}

}  // namespace assay::collect
