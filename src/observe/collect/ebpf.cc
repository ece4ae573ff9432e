#include "observe/collect/ebpf.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "observe/collect/ebpf_messages.h"
#include "observe/collect/ebpf_programs.h"
#include "observe/collect/launch.h"
#include "observe/collect/log.h"

namespace assay::collect {
namespace {

// How long messages may wait for a look when nothing else happens (bpf/job.h, send).
constexpr int kShortestWait_ms = 5;
constexpr int kLongestWait_ms = 100;
// Messages are first written to the log, which has room, and told to the sink after so many, so
// that the ring does not fill up while the sink thinks.
constexpr std::size_t kRound = 1 << 16;

std::int64_t monotonic_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

// Holds the command back until the programs know it.
class Barrier {
 public:
  Barrier() {
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
    reading_.reset(ends[0]);
    writing_.reset(ends[1]);
  }
  // In the child. False if the collector gave up.
  bool wait() {
    writing_.reset();
    char byte = 0;
    ssize_t got = 0;
    do {
      got = ::read(reading_.get(), &byte, 1);
    } while (got < 0 && errno == EINTR);
    if (got == 1) return true;
    errno = ECANCELED;
    return false;
  }
  void open() {
    [[maybe_unused]] const auto written = ::write(writing_.get(), "", 1);
    close();
  }
  void close() { writing_.reset(); }

 private:
  base::UniqueFd reading_;
  base::UniqueFd writing_;
};

std::vector<Missed> missed_by(EbpfPrograms& programs, const EbpfMessages& messages) {
  const volatile assay_shared& shared = programs.shared();
  std::vector<Missed> missed;
  const auto add = [&](std::uint64_t count, const char* what, std::string_view text) {
    if (count > 0) missed.push_back({what, fmt::format("{} {}", count, text)});
  };
  add(shared.dropped_full, "dropped", "events found the kernel's ring buffer full");
  add(shared.dropped_path, "dropped",
      "files were opened whose path is longer than the kernel's limit or was gone at once");
  add(shared.dropped_member, "unseen", "processes could not be followed");
  add(programs.skipped_runs(), "dropped", "events came while another was taken on that processor");
  add(messages.strangers(), "namespace",
      "files were opened in another mount namespace, where their paths mean other files");
  add(shared.uring_changes, "io_uring", "files were renamed, linked, cut or removed by io_uring");
  add(shared.uring_unfollowed, "io_uring", "files were opened into io_uring's own table");
  if (programs.mode() == EbpfMode::kSyscall &&
      shared.uring_opens_begun > shared.uring_opens_ended) {
    add(shared.uring_opens_begun - shared.uring_opens_ended, "io_uring",
        "opens by io_uring whose end was not seen");
  }
  if (!programs.follows_uring())
    add(shared.uring_rings, "io_uring",
        "rings were set up, which this kernel does not let us follow");
  add(messages.unseen_changes(), "unseen",
      "existing files were opened for writing past the gate: their former content is not known");
  return missed;
}

class EbpfCollector : public Collector {
 public:
  explicit EbpfCollector(std::filesystem::path log) : path_(std::move(log)) {}

  base::Result<Outcome> run(const Launch& launch, const Control& control, Sink& sink) override {
    ASSAY_TRY(Log log, Log::create(path_));
    ASSAY_TRY(EbpfPrograms programs,
              EbpfPrograms::load(ebpf_enters_functions() ? EbpfMode::kVfs : EbpfMode::kSyscall));
    Barrier barrier;
    ASSAY_TRY(Launched child, collect::launch(launch, [&] { return barrier.wait(); }));
    if (auto adopted = programs.adopt(child.pid); !adopted) {
      barrier.close();
      ::waitpid(child.pid, nullptr, 0);
      return base::fail(std::move(adopted).error());
    }
    log.append({.op = wire::Op::kProcess,
                .source = wire::Source::kEbpf,
                .flags = wire::flag::kNoStamp,
                .thread = child.pid,
                .process = child.pid,
                .parent = ::getpid(),
                .time_ns = monotonic_ns()});
    barrier.open();
    EbpfMessages messages;
    Outcome outcome;
    ASSAY_TRY_VOID(loop(launch, control, sink, log, programs, messages, child, outcome));
    outcome.missed = missed_by(programs, messages);
    outcome.dropped =
        programs.shared().dropped_full + programs.shared().dropped_path + programs.skipped_runs();
    return outcome;
  }

 private:
  static std::size_t take(EbpfPrograms& programs, EbpfMessages& messages, Log& log) {
    const EbpfMessages::Teller append = [&](const Event& event) { log.append(event); };
    return programs.take(
        [&](const assay_message& message, std::string_view names, std::string_view other) {
          messages.receive(message, names, other, append);
        },
        kRound);
  }

  static base::Result<void> loop(const Launch& launch, const Control& control, Sink& sink, Log& log,
                                 EbpfPrograms& programs, EbpfMessages& messages, Launched& child,
                                 Outcome& outcome) {
    const base::UniqueFd ending(static_cast<int>(::syscall(SYS_pidfd_open, child.pid, 0)));
    bool started = false;
    bool ended = false;
    int wait_ms = kShortestWait_ms;
    while (!ended || programs.shared().live > 0) {
      std::array<pollfd, 3> waiting{{{programs.descriptor(), POLLIN, 0},
                                     {ended ? -1 : ending.get(), POLLIN, 0},
                                     {started ? -1 : child.exec_result.get(), POLLIN, 0}}};
      ::poll(waiting.data(), waiting.size(), wait_ms);
      if (waiting[2].revents != 0) {
        started = true;
        if (auto error = exec_failure(launch, child.exec_result.get())) {
          ::waitpid(child.pid, nullptr, 0);
          return base::fail(*std::move(error));
        }
        control.started(child.pid, -1);
      }
      if (waiting[1].revents != 0 &&
          ::wait4(child.pid, &outcome.wait_status, WNOHANG, &outcome.usage) == child.pid) {
        ended = true;
        control.ended(outcome.wait_status);
      }
      const std::size_t taken = take(programs, messages, log);
      log.drain(sink);
      wait_ms = taken == kRound ? 0
                : taken > 0     ? kShortestWait_ms
                                : std::clamp(2 * wait_ms, kShortestWait_ms, kLongestWait_ms);
    }
    while (take(programs, messages, log) > 0) log.drain(sink);
    log.finish(sink);
    return {};
  }

  std::filesystem::path path_;
};

}  // namespace

std::unique_ptr<Collector> make_ebpf_collector(const std::filesystem::path& log) {
  return std::make_unique<EbpfCollector>(log);
}

}  // namespace assay::collect
