// The load of bench/load: many processes that each create files and read them back.
//
//   load_tool FOLDER PROCESSES FILES     so many processes, each with so many files
//
// Each process execs this program again, as a build or a sweep would. At most as many run at a time
// as there are processors. Ends with 0 only if every call worked.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

[[noreturn]] void fail(const std::string& what) {
  std::perror(what.c_str());
  std::exit(1);
}

int one_process(const std::string& folder, int files) {
  if (::mkdir(folder.c_str(), 0755) != 0) fail(folder);
  for (int i = 0; i < files; ++i) {
    const std::string path = folder + "/" + std::to_string(i);
    const int made = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (made < 0 || ::write(made, path.data(), path.size()) != std::ssize(path)) fail(path);
    ::close(made);
    char buffer[4096];
    const int read = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (read < 0 || ::read(read, buffer, sizeof buffer) != std::ssize(path)) fail(path);
    ::close(read);
  }
  return 0;
}

void wait_for_one() {
  int status = 0;
  if (::wait(&status) < 0 || status != 0) fail("a process");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3) return one_process(argv[1], std::atoi(argv[2]));
  if (argc != 4) return 64;
  const int processes = std::atoi(argv[2]);
  const long at_a_time = ::sysconf(_SC_NPROCESSORS_ONLN);
  long running = 0;
  for (int i = 0; i < processes; ++i) {
    for (; running >= at_a_time; --running) wait_for_one();
    const std::string folder = std::string(argv[1]) + "/" + std::to_string(i);
    const pid_t child = ::vfork();
    if (child == 0) {
      ::execl("/proc/self/exe", argv[0], folder.c_str(), argv[3], nullptr);
      ::_exit(127);
    }
    if (child < 0) fail("vfork");
    ++running;
  }
  for (; running > 0; --running) wait_for_one();
  return 0;
}
