// Calls every wrapper with every kind of path and flags, and prints the results.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

extern "C" {
int __open_2(const char*, int);
int __open64_2(const char*, int);
int __openat_2(int, const char*, int);
int __openat64_2(int, const char*, int);
}

namespace assay::shim::testing {
namespace {

constexpr int kUntouched = 999;

// What can be seen of an open from outside: the descriptor, errno, its flags, what it refers to.
void print(const char* call, const char* path, int flags, int file) {
  const int error = errno;
  std::printf("%s %.40s %#o: %d errno %d", call, path, static_cast<unsigned>(flags), file, error);
  if (file >= 0) {
    struct stat status {};
    fstat(file, &status);
    std::printf(" flags %#o cloexec %d mode %#o size %ld",
                static_cast<unsigned>(fcntl(file, F_GETFL)), fcntl(file, F_GETFD), status.st_mode,
                S_ISREG(status.st_mode) ? status.st_size : 0L);
    close(file);
  }
  std::printf("\n");
}

// Restores everything that an open may have changed, without calling the library's open.
void repair() {
  for (const char* name : {"missing", "folder/missing", "nowhere", "folder/nowhere"}) unlink(name);
  for (const char* name : {"file", "readonly", "folder/file"}) {
    struct stat status {};
    if (stat(name, &status) != 0 || status.st_size == 7) continue;
    const auto file = static_cast<int>(syscall(SYS_openat, AT_FDCWD, name, O_WRONLY));
    if (file < 0) continue;
    if (write(file, "content", 7) != 7 || ftruncate(file, 7) != 0) std::abort();
    close(file);
  }
}

const std::vector<int> kFlags = {O_RDONLY,
                                 O_RDONLY | O_CLOEXEC,
                                 O_RDONLY | O_NOFOLLOW,
                                 O_RDONLY | O_DIRECTORY,
                                 O_RDONLY | O_EXCL,
                                 O_PATH,
                                 O_PATH | O_NOFOLLOW,
                                 O_PATH | O_CREAT,
                                 O_WRONLY | O_NONBLOCK,
                                 O_RDWR,
                                 O_WRONLY | O_APPEND,
                                 O_WRONLY | O_TRUNC,
                                 O_RDONLY | O_TRUNC,
                                 O_RDONLY | O_CREAT,
                                 O_RDONLY | O_CREAT | O_EXCL,
                                 O_WRONLY | O_CREAT,
                                 O_WRONLY | O_CREAT | O_EXCL,
                                 O_WRONLY | O_CREAT | O_TRUNC,
                                 O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC,
                                 O_RDWR | O_CREAT | O_EXCL | O_TRUNC,
                                 O_WRONLY | O_CREAT | O_NOFOLLOW,
                                 O_RDWR | O_CREAT | O_APPEND | O_SYNC,
                                 O_WRONLY | O_CREAT | O_DIRECTORY,
                                 O_RDONLY | O_CREAT | O_DIRECTORY,
                                 O_WRONLY | O_DIRECTORY,
                                 O_TMPFILE | O_RDWR,
                                 O_TMPFILE | O_RDONLY,
                                 O_TMPFILE | O_WRONLY | O_EXCL,
                                 O_ACCMODE,
                                 O_ACCMODE | O_CREAT,
                                 O_WRONLY | O_EXCL | O_NONBLOCK,
                                 1 << 30};

}  // namespace

void open_table() {
  const std::string long_name(300, 'n');
  std::string long_path;
  while (long_path.size() < 5000) long_path += "./";
  std::string fitting;
  while (fitting.size() < 4080) fitting += "./";
  fitting += "file";
  const auto* wild = reinterpret_cast<const char*>(std::uintptr_t{1});
  constexpr std::size_t kPipe = 0;
  const std::vector<const char*> paths = {"pipe",
                                          "file",
                                          "missing",
                                          "folder",
                                          "folder/",
                                          "folder/file",
                                          "folder/missing",
                                          "file/",
                                          "file/below",
                                          "missing/below",
                                          "missing/",
                                          "link",
                                          "dangling",
                                          "loop",
                                          "secret",
                                          "readonly",
                                          "closed/file",
                                          "closed/missing",
                                          "sticky/other",
                                          "",
                                          ".",
                                          "..",
                                          "/",
                                          "/dev/null",
                                          "/proc/self/status",
                                          "/proc/missing",
                                          "/sys/missing",
                                          long_name.c_str(),
                                          long_path.c_str(),
                                          fitting.c_str(),
                                          nullptr,
                                          wild};
  const int folder = static_cast<int>(syscall(SYS_openat, AT_FDCWD, "folder", O_RDONLY));
  umask(027);
  for (const char* path : paths) {
    for (const int base : kFlags) {
      const int flags = base | O_NONBLOCK;
      const char* name = path == nullptr ? "(null)" : path == wild ? "(wild)" : path;
      errno = kUntouched;
      print("open", name, flags, open(path, flags, 0666));
      repair();
      errno = kUntouched;
      print("openat", name, flags, openat(folder, path, flags, 0604));
      repair();
      errno = kUntouched;
      print("openat closed", name, flags, openat(77, path, flags, 0600));
      repair();
    }
    if (path == paths[kPipe]) continue;  // creat waits for a reader of the pipe
    errno = kUntouched;
    print("creat", path == nullptr || path == wild ? "bad" : path, 0, creat(path, 0640));
    repair();
  }
  for (const char* path : {"file", "missing", "link"}) {
    errno = kUntouched;
    print("open64", path, 0, open64(path, O_RDONLY));
    print("open64", path, 0, open64(path, O_RDWR | O_CREAT, 0666));
    print("openat64", path, 0, openat64(folder, path, O_RDWR | O_CREAT, 0666));
    print("creat64", path, 0, creat64(path, 0666));
    print("__open_2", path, 0, __open_2(path, O_RDONLY));
    print("__open64_2", path, 0, __open64_2(path, O_RDWR));
    print("__openat_2", path, 0, __openat_2(folder, path, O_RDONLY));
    print("__openat64_2", path, 0, __openat64_2(folder, path, O_RDWR));
    repair();
  }
  errno = kUntouched;
  int result = chdir("missing");
  std::printf("chdir %d errno %d\n", result, errno);
  result = fchdir(77);
  std::printf("fchdir %d errno %d\n", result, errno);
  errno = kUntouched;
  result = fchdir(folder);
  std::printf("fchdir %d errno %d\n", result, errno);
  print("open", "missing", 0, open("file", O_RDONLY));
}

void fopen_table() {
  const char* modes[] = {"r",
                         "rb",
                         "r+",
                         "r+b",
                         "rb+",
                         "re",
                         "rm",
                         "rc",
                         "rt",
                         "w",
                         "wb",
                         "w+",
                         "wx",
                         "w+x",
                         "wxe",
                         "we",
                         "wm",
                         "a",
                         "ab",
                         "a+",
                         "a+e",
                         "ax",
                         "",
                         "z",
                         "+r",
                         "rw",
                         "rbbbbb+",
                         "rbbbbbb+",
                         "r,ccs=UTF-8",
                         "w,ccs=UTF-8",
                         "r,ccs=nothing",
                         "wbbbbbbx"};
  const char* paths[] = {"file",     "missing", "folder",    "readonly", "link",
                         "dangling", "secret",  "/dev/null", ""};
  for (const char* path : paths) {
    for (const char* mode : modes) {
      for (const bool wide : {false, true}) {
        errno = kUntouched;
        FILE* stream = wide ? fopen64(path, mode) : fopen(path, mode);
        std::printf("fopen%s %s %s: %d errno %d", wide ? "64" : "", path, mode, stream != nullptr,
                    errno);
        if (stream != nullptr) {
          const int file = fileno(stream);
          std::printf(" fd %d flags %#o cloexec %d at %ld", file,
                      static_cast<unsigned>(fcntl(file, F_GETFL)), fcntl(file, F_GETFD),
                      ftell(stream));
          char text[16] = {};
          errno = kUntouched;
          std::printf(" read %zu", std::fread(text, 1, 3, stream));
          std::printf(" '%s' error %d errno %d", text, ferror(stream), errno);
          clearerr(stream);
          std::fseek(stream, 0, SEEK_CUR);
          errno = kUntouched;
          std::printf(" write %zu", std::fwrite("XY", 1, 2, stream));
          const int flushed = std::fflush(stream);
          std::printf(" flush %d errno %d at %ld", flushed, errno, ftell(stream));
          std::printf(" close %d", std::fclose(stream));
          struct stat status {};
          stat(path, &status);
          std::printf(" mode %#o size %ld", status.st_mode,
                      S_ISREG(status.st_mode) ? status.st_size : 0);
        }
        std::printf("\n");
        repair();
      }
    }
  }
}

}  // namespace assay::shim::testing
