// Actions about processes: run another, exec, fork, exit.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "observe/shim/gpu/testing/memory_script.h"

namespace memory {
namespace {

// Executes the command in the variable.
int become(const Action& action) {
  const std::string command = std::string("exec ") + std::getenv(action.rest.c_str());
  return ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
}

// The child continues; its parent waits and exits with its status.
int fork_on(const Action&) {
  std::fflush(stdout);
  const pid_t child = ::fork();
  int status = 0;
  if (child == 0) return 0;
  ::waitpid(child, &status, 0);
  ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

int bury(const Action& action) {
  const pid_t child = ::fork();
  if (child == 0) become(action);
  siginfo_t ended{};
  return ::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);
}

}  // namespace

Actions process_actions() {
  return {
      {"shell",
       [](const Action& action) {
         std::fflush(stdout);
         return std::system(std::getenv(action.rest.c_str()));
       }},
      {"exec",
       [](const Action& action) {
         std::fflush(stdout);
         return become(action);
       }},
      {"bury", bury},
      {"fork", fork_on},
      {"exit", [](const Action&) -> int { std::fflush(stdout), ::_exit(0); }},
      {"kill", [](const Action&) { return std::fflush(stdout), ::raise(SIGKILL); }},
      {"sleep",
       [](const Action& action) {
         std::this_thread::sleep_for(std::chrono::milliseconds(action.number(0)));
         return 0;
       }},
  };
}

}  // namespace memory
