// Memory of the fake devices by process, shared by the fake driver and the fake NVML: in the file
// $FAKECUDA_STATE.memory, which all processes with this variable share, or in this process alone.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace fake {

constexpr int kMaxDevices = 16;
constexpr int kMaxProcesses = 512;

inline std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

struct MemoryState {
  struct Process {
    std::atomic<int> pid;
    std::atomic<std::uint64_t> used[kMaxDevices];
  };
  std::atomic<std::uint64_t> used[kMaxDevices];
  Process processes[kMaxProcesses];
};

// Tests leave no files in the working directory.
inline bool is_temporary(const std::string& path) {
  const char* folder = std::getenv("TMPDIR");
  return path.starts_with("/dev/shm/") || path.starts_with("/tmp/") ||
         (folder != nullptr && path.starts_with(std::string(folder) + "/"));
}

inline MemoryState& memory_state() {
  static MemoryState own{};
  static MemoryState* const shared = [] {
    const char* state = std::getenv("FAKECUDA_STATE");
    if (state == nullptr) return &own;
    if (!is_temporary(state)) {
      std::fprintf(stderr, "fakecuda: FAKECUDA_STATE=%s is not in a folder for temporary files\n",
                   state);
      std::abort();
    }
    const int file =
        ::open((std::string(state) + ".memory").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ::ftruncate(file, sizeof(MemoryState)) != 0) return &own;
    void* memory =
        ::mmap(nullptr, sizeof(MemoryState), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    return memory == MAP_FAILED ? &own : static_cast<MemoryState*>(memory);
  }();
  return *shared;
}

// As a driver does, releases the memory of processes that have exited.
inline void sweep() {
  MemoryState& state = memory_state();
  for (MemoryState::Process& process : state.processes) {
    int pid = process.pid.load();
    if (pid <= 0 || ::kill(pid, 0) == 0 || errno != ESRCH) continue;
    if (!process.pid.compare_exchange_strong(pid, -1)) continue;
    for (int device = 0; device < kMaxDevices; ++device) {
      state.used[device] -= process.used[device].exchange(0);
    }
    process.pid = 0;
  }
}

inline MemoryState::Process& own_process() {
  static std::atomic<MemoryState::Process*> mine{nullptr};
  static std::atomic<int> whose{0};
  const int pid = ::getpid();
  if (whose.load() == pid && mine.load() != nullptr) return *mine.load();
  for (MemoryState::Process& process : memory_state().processes) {
    int expected = 0;
    if (process.pid.load() == pid || process.pid.compare_exchange_strong(expected, pid)) {
      mine = &process;
      whose = pid;
      return process;
    }
  }
  static MemoryState::Process none{};
  return none;
}

// The devices that a process sees: CUDA_VISIBLE_DEVICES by number or by UUID, of slices too.
inline int visible_devices(int (&physical)[kMaxDevices]) {
  const int devices = static_cast<int>(setting("FAKECUDA_DEVICES", 1));
  const char* list = std::getenv("CUDA_VISIBLE_DEVICES");
  int number = 0;
  if (list == nullptr) {
    for (; number < devices && number < kMaxDevices; ++number) physical[number] = number;
    return number;
  }
  const std::string text = list;
  for (std::size_t at = 0; at < text.size() && number < kMaxDevices;) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string word = text.substr(at, end - at);
    const bool uuid = word.rfind("GPU-", 0) == 0 || word.rfind("MIG-", 0) == 0;
    const int device =
        uuid ? static_cast<int>(std::strtol(word.substr(word.size() - 2).c_str(), nullptr, 16))
             : static_cast<int>(std::strtol(word.c_str(), nullptr, 10));
    if (device < 0 || device >= devices) break;
    physical[number++] = device;
    at = end + 1;
  }
  return number;
}

}  // namespace fake
