// The program on which the eBPF collector is tested: it opens files in all possible ways.
//
//   ebpf_subject WAY ARGUMENT…
//
// Statically linked, so that it opens nothing else.
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::exit(2);
}

void read_once(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY);
  if (fd < 0) die(path.c_str());
  ::close(fd);
}

// FOLDER COUNT TIMES: opens FOLDER/0 … COUNT-1, each TIMES times.
void many(const std::string& folder, int count, int times) {
  for (int time = 0; time < times; ++time) {
    for (int i = 0; i < count; ++i) read_once(folder + "/" + std::to_string(i));
  }
}

// FOLDER COUNT: thread i opens FOLDER/i.
void threads(const std::string& folder, int count) {
  std::vector<std::thread> all;
  for (int i = 0; i < count; ++i) {
    all.emplace_back([=] { read_once(folder + "/" + std::to_string(i)); });
  }
  for (std::thread& thread : all) thread.join();
}

// FOLDER COUNT: process i opens FOLDER/i, each the child of the one before; the first ends first.
void chain(const std::string& folder, int count) {
  for (int i = 0; i < count; ++i) {
    const pid_t child = ::fork();
    if (child < 0) die("fork");
    if (child > 0) ::_exit(i % 100);
    read_once(folder + "/" + std::to_string(i));
  }
}

// FOLDER COUNT: COUNT processes at a time each open FOLDER/i, and end.
void forks(const std::string& folder, int count) {
  for (int i = 0; i < count; ++i) {
    const pid_t child = ::fork();
    if (child < 0) die("fork");
    if (child == 0) {
      read_once(folder + "/" + std::to_string(i));
      ::_exit(0);
    }
    if (i % 64 == 63) {
      while (::waitpid(-1, nullptr, WNOHANG) > 0) {
      }
    }
  }
  while (::waitpid(-1, nullptr, 0) > 0) {
  }
}

// FOLDER: the last thread to end is not the first; the process ends with 7.
void outlived() {
  std::thread([] {
    ::usleep(20'000);
    std::exit(7);
  }).detach();
  ::syscall(SYS_exit, 3);
}

// FOLDER: one file each way.
void ways(const std::string& folder) {
  const auto at = [&](const char* name) { return folder + "/" + name; };
  if (::open(at("created").c_str(), O_WRONLY | O_CREAT, 0600) < 0) die("created");
  if (::open(at("exclusive").c_str(), O_RDWR | O_CREAT | O_EXCL, 0600) < 0) die("exclusive");
  if (::creat(at("creat").c_str(), 0600) < 0) die("creat");
  if (::open(at("written").c_str(), O_WRONLY) < 0) die("written");
  if (::open(at("both").c_str(), O_RDWR) < 0) die("both");
  if (::open(at("cut").c_str(), O_WRONLY | O_TRUNC) < 0) die("cut");
  if (::open(folder.c_str(), O_RDWR | O_TMPFILE, 0600) < 0) die("tmpfile");
  ::open(at("path").c_str(), O_PATH);
  ::open(at("missing").c_str(), O_RDONLY);
  ::open(folder.c_str(), O_RDONLY | O_DIRECTORY);
  const open_how how{.flags = O_RDONLY, .mode = 0, .resolve = 0};
  if (::syscall(SYS_openat2, AT_FDCWD, at("openat2").c_str(), &how, sizeof how) < 0) die("openat2");
  const int directory = ::open(folder.c_str(), O_PATH);
  if (::openat(directory, "relative", O_RDONLY) < 0) die("relative");
  if (::chdir(folder.c_str()) != 0 || ::open("symlink", O_RDONLY) < 0) die("symlink");
  if (::open("hard", O_RDONLY) < 0) die("hard");
  const int memory = ::memfd_create("memory", 0);
  ::open(("/proc/self/fd/" + std::to_string(memory)).c_str(), O_RDONLY);
}

// FOLDER COUNT: creates, reads and removes a file of the same name COUNT times, so that inode
// numbers are reused.
void reuse(const std::string& folder, int count) {
  for (int i = 0; i < count; ++i) {
    const std::string path = folder + "/again";
    ::close(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600));
    read_once(path);
    ::unlink(path.c_str());
  }
}

// Descends from FOLDER into subfolder `name` as deep as possible and opens the file there, whose
// path is longer than one call accepts.
void descend(const std::string& folder, const std::string& name) {
  if (::chdir(folder.c_str()) != 0) die("chdir");
  while (::chdir(name.c_str()) == 0) {
  }
  read_once("file");
}

struct Ring {
  int fd = -1;
  io_uring_params parameters{};
  char* submissions = nullptr;
  char* completions = nullptr;
  io_uring_sqe* entries = nullptr;

  Ring() {
    fd = static_cast<int>(::syscall(SYS_io_uring_setup, 8, &parameters));
    if (fd < 0) std::exit(77);  // not allowed here
    const auto map = [&](std::size_t size, off_t offset) {
      return ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, offset);
    };
    submissions = static_cast<char*>(map(4096, IORING_OFF_SQ_RING));
    completions = static_cast<char*>(map(4096, IORING_OFF_CQ_RING));
    entries = static_cast<io_uring_sqe*>(map(4096, IORING_OFF_SQES));
  }

  int open(const std::string& path, unsigned flags, unsigned submission_flags) {
    auto word = [&](char* base, unsigned offset) {
      return reinterpret_cast<std::atomic<unsigned>*>(base + offset);
    };
    const unsigned tail = word(submissions, parameters.sq_off.tail)->load();
    const unsigned mask = *word(submissions, parameters.sq_off.ring_mask);
    io_uring_sqe& entry = entries[tail & mask];
    std::memset(&entry, 0, sizeof entry);
    entry.opcode = IORING_OP_OPENAT;
    entry.fd = AT_FDCWD;
    entry.addr = reinterpret_cast<std::uintptr_t>(path.c_str());
    entry.open_flags = flags;
    entry.len = 0600;
    entry.flags = static_cast<__u8>(submission_flags);
    *word(submissions, parameters.sq_off.array + 4 * (tail & mask)) = tail & mask;
    word(submissions, parameters.sq_off.tail)->store(tail + 1);
    if (::syscall(SYS_io_uring_enter, fd, 1, 1, IORING_ENTER_GETEVENTS, nullptr, 0) < 0) {
      die("io_uring_enter");
    }
    const unsigned head = word(completions, parameters.cq_off.head)->load();
    const unsigned cq_mask = *word(completions, parameters.cq_off.ring_mask);
    const auto* results =
        reinterpret_cast<const io_uring_cqe*>(completions + parameters.cq_off.cqes);
    const int result = results[head & cq_mask].res;
    word(completions, parameters.cq_off.head)->store(head + 1);
    return result;
  }
};

// FOLDER: reads and writes, in the caller and in a worker.
void uring(const std::string& folder) {
  Ring ring;
  if (ring.open(folder + "/inline", O_RDONLY, 0) < 0) die("inline");
  if (ring.open(folder + "/worker", O_RDONLY, IOSQE_ASYNC) < 0) die("worker");
  if (ring.open(folder + "/written", O_WRONLY, 0) < 0) die("written");
  if (ring.open(folder + "/created", O_WRONLY | O_CREAT, 0) < 0) die("created");
  ring.open(folder + "/missing", O_RDONLY, 0);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> given(argv, argv + argc);
  if (argc < 3) return 64;
  const std::string& way = given[1];
  const std::string& folder = given[2];
  const int count = argc > 3 ? std::atoi(argv[3]) : 0;
  if (way == "many") many(folder, count, argc > 4 ? std::atoi(argv[4]) : 1);
  if (way == "threads") threads(folder, count);
  if (way == "chain") chain(folder, count);
  if (way == "forks") forks(folder, count);
  if (way == "outlived") outlived();
  if (way == "ways") ways(folder);
  if (way == "reuse") reuse(folder, count);
  if (way == "descend") descend(folder, given[3]);
  if (way == "uring") uring(folder);
  return 0;
}
