#include "lineage/reproduce/stage_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "base/wait_status.h"

namespace assay::lineage {
namespace {

namespace fs = std::filesystem;

// As the shell finds it, with the stage's PATH and from its folder.
std::string program_path(const std::string& word, const std::vector<std::string>& environment,
                         const fs::path& directory) {
  if (word.find('/') != std::string::npos) return word;
  std::string_view path = "/usr/local/bin:/usr/bin:/bin";
  for (const std::string& entry : environment) {
    if (entry.starts_with("PATH=")) path = std::string_view(entry).substr(5);
  }
  while (true) {
    const std::string_view folder = path.substr(0, path.find(':'));
    const fs::path found = directory / fs::path(folder) / word;
    if (::access(found.c_str(), X_OK) == 0 && !fs::is_directory(found)) return found.string();
    if (folder.size() == path.size()) return word;
    path.remove_prefix(folder.size() + 1);
  }
}

// Two descriptors of one file (`> log 2>&1`) share it, or one would write over the other.
void add_redirects(posix_spawn_file_actions_t& actions, const std::vector<Redirect>& redirects) {
  for (std::size_t i = 0; i < redirects.size(); ++i) {
    const Redirect& one = redirects[i];
    const auto end = redirects.begin() + static_cast<std::ptrdiff_t>(i);
    const auto same = std::find_if(redirects.begin(), end, [&one](const Redirect& other) {
      return other.writes && one.writes && other.path == one.path;
    });
    if (same != end) {
      ::posix_spawn_file_actions_adddup2(&actions, same->descriptor, one.descriptor);
      continue;
    }
    ::posix_spawn_file_actions_addopen(&actions, one.descriptor, one.path.c_str(), open_flags(one),
                                       0666);
  }
}

}  // namespace

int run_words(const std::vector<std::string>& given, const std::vector<std::string>& entries,
              const fs::path& directory, const std::vector<Redirect>& redirects, int output_fd) {
  std::vector<std::string> words = given, environment = entries;
  std::vector<char*> word_pointers, environment_pointers;
  for (std::string& word : words) word_pointers.push_back(word.data());
  for (std::string& entry : environment) environment_pointers.push_back(entry.data());
  word_pointers.push_back(nullptr);
  environment_pointers.push_back(nullptr);
  const std::string program = program_path(words[0], environment, directory);

  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, output_fd, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output_fd, STDERR_FILENO);
  add_redirects(actions, redirects);
  ::posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, program.c_str(), &actions, nullptr, word_pointers.data(),
                                  environment_pointers.data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return error == EACCES ? 126 : 127;
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return base::shell_exit_code(status);
}

}  // namespace assay::lineage
