#include "observe/collect/process/proc.h"

#include <dirent.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <memory>
#include <string>
#include <string_view>

#include "base/process/proc.h"

namespace assay::collect {

pid_t process_of(pid_t thread) {
  // Most threads are the first of their group, which is cheap to ask.
  if (::syscall(SYS_tgkill, thread, thread, 0) == 0) return thread;
  std::array<char, 4096> buffer;
  const std::string path = "/proc/" + std::to_string(thread) + "/status";
  const std::string_view text = base::read_proc_file(path.c_str(), buffer);
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

std::vector<int> numbers_in(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(folder.c_str()), ::closedir);
  std::vector<int> out;
  while (const dirent* entry = dir ? ::readdir(dir.get()) : nullptr) {
    const std::string_view name = entry->d_name;
    int number = -1;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error == std::errc{} && end == name.data() + name.size()) out.push_back(number);
  }
  return out;
}

}  // namespace assay::collect
