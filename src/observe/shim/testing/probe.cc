// The program that the shim's tests run with and without the shim: it does one thing and prints the
// result, so that the two outputs can be compared. It is independent of the shim.
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace assay::shim::testing {
void open_table();  // probe_tables.cc
void fopen_table();
}  // namespace assay::shim::testing

namespace {

constexpr int kUntouched = 999;

int must_open(const char* path, int flags = O_RDONLY) {
  const int file = open(path, flags, 0666);
  if (file < 0) {
    std::printf("cannot open %s: %s\n", path, std::strerror(errno));
    std::exit(1);
  }
  return file;
}

void touch(const char* path, int flags = O_RDONLY) {
  close(must_open(path, flags));
}

// A distinct spelling of the path "file" for every number, at least `length` bytes long.
std::string spelling(int number, std::size_t length) {
  std::string text;
  for (int bits = number + 1; bits > 0; bits /= 2) text += bits % 2 == 0 ? ".//" : "./";
  text += ".///";
  while (text.size() < length) text += "./";
  return text + "file";
}

// Every way to specify a file's location.
void places() {
  char here[4096];
  if (getcwd(here, sizeof here) == nullptr) std::exit(1);
  touch((std::string(here) + "/file").c_str());
  touch("readonly");
  touch("link");
  touch("file");       // refers to another file below, after chdir
  touch("folder");     // not a file
  touch("/dev/null");  // not one either
  const int folder = must_open("folder", O_RDONLY | O_DIRECTORY);
  close(openat(folder, "file", O_RDONLY));
  close(openat(folder, "../folder/made", O_WRONLY | O_CREAT | O_TRUNC, 0666));
  if (chdir("folder") != 0) std::exit(1);
  touch("file");
  if (fchdir(folder) != 0 || chdir("..") != 0) std::exit(1);
  touch("made", O_RDWR | O_CREAT);
  touch("dangling", O_WRONLY | O_CREAT);  // the collector's
  touch("file", O_WRONLY);                // the collector's
  std::ifstream("folder/./file").get();
  std::ofstream("stream") << "text";
  const int kept = must_open("folder/made");
  touch(("/proc/self/fd/" + std::to_string(kept)).c_str());
  if (dup2(kept, 0) != 0) std::exit(1);
  touch("/dev/stdin");
  // A directory without a name.
  if (mkdir("gone", 0777) != 0 || chdir("gone") != 0 || rmdir("../gone") != 0) std::exit(1);
  touch("../folder/file");
}

void repeated(int times) {
  for (int i = 0; i < times; ++i) touch("file");
  touch("folder/file", O_WRONLY);  // seen by the collector
  for (int i = 0; i < times; ++i) touch("file");
}

void say_who(const char* what) {
  char text[128];
  const int length = std::snprintf(text, sizeof text, "%s %d %d %d\n", what, getpid(), getppid(),
                                   static_cast<int>(syscall(SYS_gettid)));
  if (write(1, text, static_cast<std::size_t>(length)) != length) _exit(1);
}

void family() {
  touch("file");
  say_who("file");
  touch("readonly");
  if (const pid_t child = fork(); child == 0) {
    touch("file");  // again, but by another process
    say_who("file");
    _exit(0);
  } else {
    waitpid(child, nullptr, 0);
  }
  if (const pid_t child = vfork(); child == 0) {
    touch("folder/file");
    say_who("folder/file");
    _exit(0);
  } else {
    waitpid(child, nullptr, 0);
  }
  touch("made", O_WRONLY | O_CREAT);
  say_who("made");
  std::thread([] {
    touch("made too", O_WRONLY | O_CREAT);
    say_who("made too");
  }).join();
  // Not by the library's fork.
  if (const long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); child == 0) {
    touch("file");
    say_who("file");
    _exit(0);
  } else {
    waitpid(static_cast<pid_t>(child), nullptr, 0);
  }
}

void threads(int count, int each, std::size_t length) {
  std::vector<std::thread> all;
  for (int t = 0; t < count; ++t) {
    all.emplace_back([=] {
      for (int i = 0; i < each; ++i) touch(spelling(t * each + i, length).c_str());
    });
  }
  for (std::thread& one : all) one.join();
}

std::atomic<int> handled{0};
void in_handler(int) {
  const int error = errno;
  touch(("made" + std::to_string(handled++)).c_str(), O_WRONLY | O_CREAT);
  errno = error;
}

void signals() {
  struct sigaction action {};
  action.sa_handler = in_handler;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often{{0, 100}, {0, 100}};
  setitimer(ITIMER_REAL, &often, nullptr);
  for (int i = 0; i < 20000; ++i) touch(spelling(i, 0).c_str());
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  std::printf("%d\n", handled.load());
}

void cancelled() {
  std::thread([] {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
    pthread_cancel(pthread_self());
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr);
    open("made", O_WRONLY | O_CREAT, 0666);
    std::printf("not cancelled\n");
  }).detach();
  usleep(100'000);
  std::printf("made: %d\n", access("made", F_OK));
}

// Names that are asked about and not opened, and folders that are listed.
void names() {
  struct stat status {};
  for (int i = 0; i < 3; ++i) {
    errno = kUntouched;
    std::printf("%d", stat("nothing", &status));
    std::printf(" %d errno %d\n", access("nothing", F_OK), errno);
    std::printf("%d", lstat("no/where", &status));
    std::printf(" %d errno %d\n", open("nothing", O_RDONLY), errno);
    // Of the system, and there: not recorded.
    std::printf("%d", stat("/usr/nothing", &status));
    std::printf(" %d %d\n", stat("file", &status), access("folder", F_OK));
    DIR* const folder = opendir("folder");
    int count = 0;
    while (readdir(folder) != nullptr) ++count;
    closedir(folder);
    std::printf("%d names\n", count);
  }
  errno = kUntouched;
  std::printf("%d", fstatat(AT_FDCWD, "neither", &status, 0));
  std::printf(" %d errno %d\n", opendir("file") == nullptr ? 0 : 1, errno);
  std::printf("%d\n", stat(nullptr, &status));
  // Below open directories: one descriptor for two folders, one after the other.
  for (int i = 0; i < 3; ++i) {
    for (const char* name : {"folder", "."}) {
      const int folder = open(name, O_PATH | O_DIRECTORY);
      std::printf("%d", fstatat(folder, "neither", &status, 0));
      std::printf(" %d errno %d\n", openat(folder, "none", O_RDONLY), errno);
      close(folder);
    }
  }
}

// Files in an open folder, whose name changes with that of the folder above it.
void moved_folder() {
  if (mkdir("folder/inner", 0777) != 0) std::exit(1);
  touch("folder/inner/file", O_WRONLY | O_CREAT);
  const int inner = must_open("folder/inner", O_RDONLY | O_DIRECTORY);
  const int folder = must_open("folder", O_RDONLY | O_DIRECTORY);
  for (int i = 0; i < 2; ++i) close(openat(inner, "file", O_RDONLY));
  close(openat(folder, "file", O_RDONLY));
  close(openat(inner, "file", O_RDONLY));
  if (rename("folder", "other") != 0) std::exit(1);
  close(openat(inner, "file", O_RDONLY));
  close(openat(folder, "file", O_RDONLY));
  if (rename("other/inner", "other/outer") != 0) std::exit(1);
  close(openat(inner, "file", O_RDONLY));
}

// Times of a file that was just created, of one that was there, and of one that was created and
// then removed. Prints the results.
void times() {
  const timespec set[2] = {{.tv_sec = 1'000'000, .tv_nsec = 5},
                           {.tv_sec = 2'000'000, .tv_nsec = 7}};
  const auto print = [&](int file) {
    errno = kUntouched;
    struct stat status {};
    std::printf("%d", futimens(file, set));
    std::printf(" errno %d", errno);
    fstat(file, &status);
    std::printf(" %ld.%ld\n", status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
  };
  const int made = must_open("made", O_WRONLY | O_CREAT);
  print(made);
  print(must_open("file"));
  print(made);
  unlink("made");
  print(made);
  print(-1);
  print(999);
}

void descriptors() {
  if (syscall(SYS_close_range, 3, ~0U, 0) != 0) std::exit(1);
  std::printf("%d\n", must_open("file"));
  std::printf("%d\n", must_open("readonly"));
  while (dup(0) >= 0) continue;
  errno = kUntouched;
  const int file = open("folder/file", O_RDONLY);
  std::printf("%d errno %d\n", file, errno);
}

void print(const char* what, int file) {
  std::printf("%s %d errno %d\n", what, file, errno);
  if (file >= 0) close(file);
}

void deserted() {
  touch("folder/file", O_WRONLY);  // here the collector is killed
  errno = kUntouched;
  print("write", open("file", O_WRONLY));
  print("create", open("made", O_RDWR | O_CREAT | O_TRUNC, 0666));
  print("again", open("made", O_RDWR | O_CREAT | O_TRUNC, 0666));
  print("missing", open("missing", O_RDWR));
  print("read", open("file", O_RDONLY));
}

void rooted() {
  if (chroot("folder") != 0 || chdir("/") != 0) {
    std::printf("cannot\n");
    return;
  }
  touch("/file");
  touch("made", O_WRONLY | O_CREAT);
}

// Before any library's constructor, and after everything.
void early(int, char** argv, char**) {
  if (argv[1] != nullptr && std::strcmp(argv[1], "edges") == 0) touch("file");
}
[[gnu::section(".preinit_array"), gnu::used]] void (*const early_pointer)(int, char**,
                                                                          char**) = early;
[[gnu::destructor]] void late() {
  touch("readonly");
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOFBF, 1 << 16);
  const std::string what = argc > 1 ? argv[1] : "";
  const auto number = [&](int i) { return argc > i ? std::atoi(argv[i]) : 0; };
  const bool late_wanted = what == "edges";
  if (what == "open") assay::shim::testing::open_table();
  if (what == "fopen") assay::shim::testing::fopen_table();
  if (what == "places") places();
  if (what == "repeated") repeated(number(2));
  if (what == "family") family();
  if (what == "threads") threads(number(2), number(3), static_cast<std::size_t>(number(4)));
  if (what == "signals") signals();
  if (what == "cancelled") cancelled();
  if (what == "names") names();
  if (what == "moved folder") moved_folder();
  if (what == "times") times();
  if (what == "descriptors") descriptors();
  if (what == "deserted") deserted();
  if (what == "rooted") rooted();
  std::fflush(stdout);
  if (!late_wanted) _exit(0);
}
