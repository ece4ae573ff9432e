// Words about processes: others that are run, this one that becomes another or ends.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "observe/shim/gpu/testing/memory_words.h"

namespace memory {
namespace {

// Becomes what the variable says.
int become(const Word& word) {
  const std::string command = std::string("exec ") + std::getenv(word.rest.c_str());
  return ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
}

// The child goes on; its parent waits for it, and ends as it does.
int fork_on(const Word&) {
  std::fflush(stdout);
  const pid_t child = ::fork();
  int status = 0;
  if (child == 0) return 0;
  ::waitpid(child, &status, 0);
  ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

int bury(const Word& word) {
  const pid_t child = ::fork();
  if (child == 0) become(word);
  siginfo_t ended{};
  return ::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);
}

}  // namespace

Words process_words() {
  return {
      {"shell",
       [](const Word& word) {
         std::fflush(stdout);
         return std::system(std::getenv(word.rest.c_str()));
       }},
      {"exec",
       [](const Word& word) {
         std::fflush(stdout);
         return become(word);
       }},
      {"bury", bury},
      {"fork", fork_on},
      {"exit", [](const Word&) -> int { std::fflush(stdout), ::_exit(0); }},
      {"kill", [](const Word&) { return std::fflush(stdout), ::raise(SIGKILL); }},
      {"sleep",
       [](const Word& word) {
         std::this_thread::sleep_for(std::chrono::milliseconds(word.number(0)));
         return 0;
       }},
  };
}

}  // namespace memory
