#include "clock.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace fakecuda {
namespace {

constexpr std::size_t kProcesses = 32;
constexpr std::size_t kPoints = 2048;
constexpr std::size_t kSegments = 4096;
constexpr std::uint64_t kLivenessCheckNs = 2'000'000;

// Work done by a time; linear between two points.
struct Point {
  std::uint64_t at;
  std::uint64_t done;
};
// Work of one engine, up to a place in the queue.
struct Segment {
  std::uint64_t end;
  Engine engine;
};
struct Process {
  pid_t pid;
  std::uint64_t submitted;
  std::uint64_t done;
  std::uint64_t points;
  Point last[kPoints];  // a ring
  std::uint64_t first_segment;
  std::uint64_t segments;
  Segment queue[kSegments];  // a ring

  void note(std::uint64_t at) { last[points++ % kPoints] = {at, done}; }
  [[nodiscard]] bool is_busy() const { return done != submitted; }
  void add(std::uint64_t ns, Engine engine) {
    submitted += ns;
    Segment& newest = queue[(segments + kSegments - 1) % kSegments];
    const bool same = segments > first_segment && newest.engine == engine;
    if (same || segments - first_segment == kSegments) {
      newest.end = submitted;
    } else {
      queue[segments++ % kSegments] = {submitted, engine};
    }
  }
  [[nodiscard]] const Segment& segment() const { return queue[first_segment % kSegments]; }
  [[nodiscard]] bool copies() const { return segment().engine == Engine::kCopy; }
  // The running segment.
  [[nodiscard]] std::uint64_t left() const { return segment().end - done; }
  void run(std::uint64_t ns) {
    done += ns;
    while (first_segment < segments && segment().end <= done) ++first_segment;
  }
  void drop_queue() {
    submitted = done;
    first_segment = segments;
  }
};
struct Gpu {
  pthread_mutex_t mutex;  // robust: its holder may be killed
  std::uint64_t now;
  std::uint64_t checked;
  Process processes[kProcesses];
};

void make(Gpu& gpu) {
  pthread_mutexattr_t kind;
  ::pthread_mutexattr_init(&kind);
  ::pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
  ::pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
  ::pthread_mutex_init(&gpu.mutex, &kind);
}

Gpu* open_gpu() {
  static Gpu own;
  const char* path = std::getenv("FAKECUDA_CLOCK");
  const int file = path == nullptr ? -1 : ::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) {
    make(own);
    return &own;
  }
  ::flock(file, LOCK_EX);
  struct stat status {};
  ::fstat(file, &status);
  const bool first = status.st_size == 0;
  if (first && ::ftruncate(file, sizeof(Gpu)) != 0) std::abort();
  void* memory = ::mmap(nullptr, sizeof(Gpu), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) std::abort();
  auto* gpu = static_cast<Gpu*>(memory);
  if (first) make(*gpu);
  ::flock(file, LOCK_UN);  // closing would not do: the mapping keeps the file open
  ::close(file);
  return gpu;
}

bool is_alive(pid_t pid) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char text[512] = {};
  const ssize_t size = ::read(file, text, sizeof text - 1);
  ::close(file);
  const char* name_end = size > 0 ? std::strrchr(text, ')') : nullptr;
  return name_end != nullptr && name_end[2] != 'Z' && name_end[2] != 'X';
}

// Runs queued work until now, in intervals with the same running segments.
void advance(Gpu& gpu, std::uint64_t now) {
  if (now > gpu.checked + kLivenessCheckNs) {
    gpu.checked = now;
    for (Process& process : gpu.processes) {
      if (process.is_busy() && !is_alive(process.pid)) process.drop_queue();
    }
  }
  while (gpu.now < now) {
    std::uint64_t sharing = 0;  // the multiprocessors
    bool busy = false;
    for (const Process& process : gpu.processes) {
      if (!process.is_busy()) continue;
      busy = true;
      if (!process.copies()) ++sharing;
    }
    if (!busy) {
      gpu.now = now;
      return;
    }
    const auto slower = [&](const Process& process) { return process.copies() ? 1 : sharing; };
    std::uint64_t stretch = now - gpu.now;
    for (const Process& process : gpu.processes) {
      if (process.is_busy()) stretch = std::min(stretch, process.left() * slower(process));
    }
    // Rounded down, so that no process gets more than it queued; the error is nanoseconds.
    stretch = std::max(stretch, std::max<std::uint64_t>(1, sharing));
    gpu.now += stretch;
    bool ends = false;
    for (Process& process : gpu.processes) {
      if (!process.is_busy()) continue;
      const std::uint64_t ran = std::min(process.left(), stretch / slower(process));
      ends = ends || ran == process.left();
    }
    for (Process& process : gpu.processes) {
      if (!process.is_busy()) continue;
      process.run(std::min(process.left(), stretch / slower(process)));
      if (ends) process.note(gpu.now);
    }
  }
}

class Locked {
 public:
  Locked() : gpu_(*the_gpu()) {
    if (::pthread_mutex_lock(&gpu_.mutex) == EOWNERDEAD) ::pthread_mutex_consistent(&gpu_.mutex);
    advance(gpu_, now_ns());
  }
  ~Locked() { ::pthread_mutex_unlock(&gpu_.mutex); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

  Gpu& gpu() { return gpu_; }
  Process& mine() {
    const pid_t self = ::getpid();
    Process* free_place = nullptr;
    for (Process& process : gpu_.processes) {
      if (process.pid == self) return process;
      if (process.pid == 0 && free_place == nullptr) free_place = &process;
    }
    if (free_place == nullptr) std::abort();
    free_place->pid = self;
    return *free_place;
  }

 private:
  static Gpu* the_gpu() {
    static Gpu* const gpu = open_gpu();
    return gpu;
  }
  Gpu& gpu_;
};

}  // namespace

std::uint64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t submit(std::uint64_t ns, Engine engine) {
  Locked locked;
  Process& mine = locked.mine();
  const bool idle = !mine.is_busy();
  if (ns != 0) mine.add(ns, engine);
  if (!idle || ns == 0) return mine.submitted;
  for (Process& process : locked.gpu().processes) {
    if (process.done != process.submitted) process.note(locked.gpu().now);  // all are slower now
  }
  return mine.submitted;
}

std::uint64_t done_at(std::uint64_t place) {
  Locked locked;
  const Process& mine = locked.mine();
  if (mine.done < place) return 0;
  if (place == 0) return 1;  // nothing was queued
  Point after = {locked.gpu().now, mine.done};
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(mine.points, kPoints); ++i) {
    const Point& point = mine.last[(mine.points - 1 - i) % kPoints];
    if (point.done < place) {
      const double part = static_cast<double>(place - point.done) /
                          static_cast<double>(std::max<std::uint64_t>(1, after.done - point.done));
      return point.at + static_cast<std::uint64_t>(part * static_cast<double>(after.at - point.at));
    }
    after = point;
  }
  return after.at;
}

void wait_until_done() {
  for (;;) {
    std::uint64_t left = 0;
    {
      Locked locked;
      const Process& mine = locked.mine();
      left = mine.submitted - mine.done;
    }
    if (left == 0) return;
    const timespec time{static_cast<time_t>(left / 1'000'000'000),
                        static_cast<long>(left % 1'000'000'000)};
    ::nanosleep(&time, nullptr);
  }
}

std::uint64_t busy_ns() {
  Locked locked;
  return locked.mine().done;
}

}  // namespace fakecuda
