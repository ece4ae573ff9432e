// Ranks as real processes, for tests and benchmarks: forks them, connects them over loopback and
// collects their results. A rank that hangs is killed and reported.
#pragma once

#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "comm/processes.h"

namespace assay::comm::testing {

constexpr int kMostRanks = 128;

// Memory that all ranks of a test share: addresses, and flags for tests that order events.
class SharedMemory : public KeyValue {
 public:
  SharedMemory() {
    void* memory =
        ::mmap(nullptr, sizeof(Content), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    content_ = new (memory) Content();
  }
  ~SharedMemory() override { ::munmap(content_, sizeof(Content)); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  base::Result<void> put(const std::string& key, const std::string& bytes) override {
    for (Entry& entry : content_->entries) {
      if (entry.taken.exchange(true)) continue;
      std::memcpy(entry.name, key.data(), std::min(key.size(), sizeof entry.name - 1));
      std::memcpy(entry.text, bytes.data(), std::min(bytes.size(), sizeof entry.text));
      entry.size = static_cast<int>(bytes.size());
      entry.named = true;
      return {};
    }
    return base::fail(base::failed_error(key, "there is no place for it"));
  }
  base::Result<std::string> get(const std::string& key,
                                std::chrono::milliseconds timeout) override {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    const Entry* entry = nullptr;
    while ((entry = find(key)) == nullptr) {
      if (std::chrono::steady_clock::now() > deadline) {
        return base::fail(base::failed_error(key, "nobody has put it"));
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return std::string(entry->text, static_cast<std::size_t>(entry->size.load()));
  }
  std::atomic<int>& flag(int i) { return content_->flags[i]; }
  // Waits until a flag has at least this value; bounded by the test's limit for a rank.
  void await(int i, int value) {
    while (flag(i) < value) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  std::atomic<double>& figure(int i) { return content_->figures[i]; }

 private:
  struct Entry {
    std::atomic<bool> taken = false;
    std::atomic<bool> named = false;
    std::atomic<int> size = 0;
    char name[64] = {};
    char text[252] = {};
  };
  struct Content {
    Entry entries[2 * kMostRanks];
    std::atomic<int> flags[16] = {};
    std::atomic<double> figures[256] = {};
  };
  // Entries are only ever added. Null: there is none of this name yet.
  Entry* find(const std::string& key) {
    for (Entry& entry : content_->entries) {
      if (entry.named && key == entry.name) return &entry;
    }
    return nullptr;
  }
  Content* content_;
};

struct RankProcesses {
  int ranks = 2;
  std::function<base::Result<void>(Communicator&)> body;
  // Replaces connect_processes, if set.
  std::function<base::Result<std::unique_ptr<Communicator>>(int rank, KeyValue&)> connect;
  std::chrono::milliseconds call_timeout = std::chrono::minutes(5);
  bool only_tcp = false;
  std::string address = "127.0.0.1";
  SharedMemory* shared = nullptr;                // set if the body uses it too
  std::function<void(int rank)> before_connect;  // in the rank's process
  bool may_leave = false;                        // for libraries that keep files and threads open
  std::chrono::seconds limit{120};
};

inline std::size_t entries_of(const char* folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

// A thread that has been joined may be listed a moment longer.
inline bool threads_remain(std::size_t before) {
  for (int tries = 0; tries < 1000; ++tries) {
    if (entries_of("/proc/self/task") <= before) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// Runs in a rank's process: "ok", or the error's line.
inline std::string rank_outcome(const RankProcesses& run, int rank, SharedMemory& shared) {
  const std::size_t files = entries_of("/proc/self/fd");
  std::thread([] {}).join();  // a sanitizer starts another thread with the first one
  const std::size_t threads = entries_of("/proc/self/task");
  std::string outcome = "ok";
  {
    if (run.before_connect) run.before_connect(rank);
    ProcessGroupOptions options;
    options.rank = rank;
    options.ranks = run.ranks;
    options.address = run.address;
    options.call_timeout = run.call_timeout;
    options.only_tcp = run.only_tcp;
    auto connected = run.connect ? run.connect(rank, shared) : connect_processes(options, shared);
    if (!connected) return connected.error().line();
    if (const auto done = run.body(**connected); !done) {
      (*connected)->abort(done.error());
      outcome = done.error().line();
    }
  }
  if (run.may_leave) return outcome;
  if (entries_of("/proc/self/fd") != files) outcome += " (and left files open)";
  if (threads_remain(threads)) outcome += " (and left threads behind)";
  return outcome;
}

// One line per rank: "ok", an error, "killed by signal 9", or "hangs".
inline std::vector<std::string> run_processes(const RankProcesses& run) {
  SharedMemory own;
  SharedMemory& shared = run.shared != nullptr ? *run.shared : own;
  struct Child {
    pid_t pid;
    int pipe;
  };
  std::vector<Child> children;
  for (int rank = 0; rank < run.ranks; ++rank) {
    int ends[2];
    if (::pipe(ends) != 0) std::abort();
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::close(ends[0]);
      for (const Child& other : children) ::close(other.pipe);
      const std::string outcome = rank_outcome(run, rank, shared);
      [[maybe_unused]] const ssize_t wrote = ::write(ends[1], outcome.data(), outcome.size());
      ::syscall(SYS_exit_group, 0);  // not _exit: thread sanitizer's takes a second
    }
    ::close(ends[1]);
    children.push_back({pid, ends[0]});
  }
  const auto deadline = std::chrono::steady_clock::now() + run.limit;
  std::vector<std::string> outcomes;
  for (const Child& child : children) {
    std::string text;
    bool ended = false;
    while (!ended) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      pollfd watched = {child.pipe, POLLIN, 0};
      if (left.count() <= 0 || ::poll(&watched, 1, static_cast<int>(left.count())) == 0) break;
      char buffer[1024];
      const ssize_t got = ::read(child.pipe, buffer, sizeof buffer);
      if (got > 0) text.append(buffer, static_cast<std::size_t>(got));
      ended = got <= 0;
    }
    if (!ended) ::kill(child.pid, SIGKILL);
    int status = 0;
    ::waitpid(child.pid, &status, 0);
    ::close(child.pipe);
    if (!ended) {
      text = "hangs";
    } else if (WIFSIGNALED(status)) {
      text = "killed by signal " + std::to_string(WTERMSIG(status));
    }
    outcomes.push_back(text);
  }
  return outcomes;
}

}  // namespace assay::comm::testing
