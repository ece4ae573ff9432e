// Launches by threads and processes that start, end, fork and are killed.
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "observe/shim/gpu/testing/probe.h"

namespace probe {

int threads(long count, long launches) {
  open_driver();
  Launch* function = find_launch();
  std::vector<std::thread> running;
  for (long i = 0; i < count; ++i) running.emplace_back([=] { launch(function, launches); });
  for (std::thread& thread : running) thread.join();
  print_calls({"cuLaunchKernel"});
  return 0;
}

// One after another: blocks must be reused.
int churn(long count) {
  open_driver();
  Launch* function = find_launch();
  for (long i = 0; i < count; ++i) std::thread([=] { launch(function, 3); }).join();
  print_calls({"cuLaunchKernel"});
  return 0;
}

// A thread's last launches come from a destructor that runs after ours.
int late_thread(long launches) {
  open_driver();
  static Launch* function = find_launch();
  static long times = launches;
  static pthread_key_t key;
  launch(function, 1);  // our thread key is created first
  ::pthread_key_create(&key, [](void*) { launch(function, times); });
  std::thread([] {
    ::pthread_setspecific(key, &key);
    launch(function, 1);
  }).join();
  print_calls({"cuLaunchKernel"});
  return 0;
}

int forks(long children, long launches) {
  open_driver();
  Launch* function = find_launch();
  launch(function, 5);
  for (long i = 0; i < children; ++i) {
    if (::fork() != 0) continue;
    launch(function, launches);
    ::_exit(0);
  }
  launch(function, launches);
  while (::wait(nullptr) > 0) {
  }
  print_calls({"cuLaunchKernel"});
  return 0;
}

int execs(char** arguments, long left) {
  open_driver();
  launch(find_launch(), 7);
  if (left <= 1) return 0;
  const std::string next = std::to_string(left - 1);
  ::execl("/proc/self/exe", arguments[0], "execs", next.c_str(), nullptr);
  return 1;
}

// Launches until it is killed; writes the count into the region's file before each.
int until_killed(long launches) {
  open_driver();
  launch(find_launch(), launches);
  ::raise(SIGKILL);
  return 0;
}

int closes_everything(long launches) {
  open_driver();
  Launch* function = find_launch();
  launch(function, launches);
  for (int i = 3; i < 1024; ++i) ::close(i);
  std::thread([=] { launch(function, launches); }).join();
  print_calls({"cuLaunchKernel"});
  return 0;
}

// A child whose parent has closed our descriptor and may have reused its number for another file,
// which must stay unlocked.
int closes_and_forks(long launches, const char* file) {
  open_driver();
  Launch* function = find_launch();
  launch(function, launches);
  for (int i = 3; i < 1024; ++i) ::close(i);
  const int own = ::open(file, O_RDWR | O_CREAT, 0600);
  for (int i = 100; own >= 0 && i < 400; ++i) ::dup2(own, i);
  if (::fork() == 0) {
    launch(function, launches);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ::_exit(0);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  struct flock lock {};
  lock.l_type = F_WRLCK;
  ::fcntl(own, F_GETLK, &lock);
  print("locked", lock.l_type == F_UNLCK ? 0 : 1);
  while (::wait(nullptr) > 0) {
  }
  return 0;
}

int at_exit() {
  open_driver();
  static Launch* function = find_launch();
  launch(function, 1);
  std::atexit([] { launch(function, 9); });
  return 0;
}

int reload(long times) {
  for (long i = 0; i < times; ++i) {
    open_driver();
    launch(find_launch(), 2);
    ::dlclose(driver);
  }
  open_driver();
  print_calls({"cuLaunchKernel"});
  return 0;
}

}  // namespace probe
