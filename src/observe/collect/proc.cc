#include "observe/collect/proc.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <string>
#include <string_view>

#include "base/process_stat.h"
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
  const auto stat = base::process_stat(process);
  return stat ? stat->parent : 0;
}

}  // namespace assay::collect
