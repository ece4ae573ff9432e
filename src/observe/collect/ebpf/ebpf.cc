#include "observe/collect/ebpf/ebpf.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>

#include "observe/collect/ebpf/intake.h"
#include "observe/collect/ebpf/messages.h"
#include "observe/collect/ebpf/programs.h"
#include "observe/collect/event/event.h"
#include "observe/collect/event/log.h"
#include "observe/collect/gate/gate.h"
#include "observe/collect/process/exits.h"
#include "observe/collect/process/launch.h"

namespace assay::collect {
namespace {

// How long messages may wait in the ring buffer (bpf/run.h, send).
constexpr int kShortestRingWait_ms = 5;
constexpr int kLongestRingWait_ms = 100;
// Messages are first copied to the log, which has space, and passed to the sink after this many, so
// that the ring does not fill up while the sink is busy.
constexpr std::size_t kRound = 1 << 16;

// Delays the command's exec until the BPF programs follow it.
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

std::vector<ObservationGap> missed_by(EbpfPrograms& programs, const EbpfMessages& messages) {
  const volatile assay_shared& shared = programs.shared();
  std::vector<ObservationGap> missed;
  const auto add = [&](std::uint64_t count, const char* what, std::string_view text) {
    if (count > 0) missed.push_back({what, fmt::format("{} {}", count, text)});
  };
  add(shared.dropped_full, "dropped", "events found the kernel's ring buffer full");
  add(shared.dropped_path, "dropped",
      "files were opened whose path is longer than the kernel's limit or was gone at once");
  add(shared.dropped_member, "unseen", "processes could not be followed");
  add(programs.skipped_runs(), "dropped",
      "events occurred while another was being recorded on that processor");
  add(messages.foreign_opens(), "namespace",
      "files were opened in another mount namespace, where their paths mean other files");
  add(shared.uring_changes, "io_uring", "files were renamed, linked, cut or removed by io_uring");
  add(shared.uring_unfollowed, "io_uring", "files were opened into io_uring's own table");
  if (programs.support().mode == EbpfMode::kSyscall &&
      shared.uring_opens_begun > shared.uring_opens_ended) {
    add(shared.uring_opens_begun - shared.uring_opens_ended, "io_uring",
        "opens by io_uring whose end was not seen");
  }
  // Includes rings inherited from outside the command, whose creation was not observed.
  if (!programs.follows_uring()) {
    add(shared.uring_calls, "io_uring", "calls to rings that could not be followed");
  }
  add(messages.unseen_changes(), "unseen",
      "existing files were opened for writing past the gate: their former content is not known");
  return missed;
}

bool is_directory(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

// One run: the programs, the gate, and what ties them together.
class EbpfRun {
 public:
  EbpfRun(EventLog& log, EbpfPrograms& programs, EventSink& sink)
      : log_(log),
        programs_(programs),
        sink_(sink),
        gate_(GateMode::kChanges, {},
              {.before = [this] { take_all(); },
               .expected = [this](const auto& event) { note(event); },
               .ring = [this] { programs_.follow_uring(); }}) {
    programs_.shared().gate_stops_changes = 1;
  }

  base::Result<CollectorResult> run(const Launch& launch, const CollectorCallbacks& control) {
    Reaper reaper;
    ASSAY_TRY(child_,
              collect::launch(launch, [this] { return barrier_.wait() && gate_.install(); }));
    ASSAY_TRY_VOID(adopt());
    append_inherited(launch.inherited, child_.pid, log_);
    log_.drain(sink_);           // before the command runs and may write to inherited files
    intake_.emplace(programs_);  // after the fork: it has a thread
    barrier_.open();
    if (!gate_.receive()) return base::fail(gate_failure(launch, child_));
    ASSAY_TRY_VOID(loop(launch, control, reaper));
    CollectorResult outcome = reaper.outcome();
    outcome.missed = missed_by(programs_, messages_);
    outcome.dropped = programs_.shared().dropped_full + programs_.shared().dropped_path +
                      programs_.skipped_runs();
    return outcome;
  }

 private:
  base::Result<void> adopt() {
    if (auto adopted = programs_.adopt(child_.pid); !adopted) {
      barrier_.close();
      ::waitpid(child_.pid, nullptr, 0);
      return adopted;
    }
    log_.append({.op = wire::RecordOp::kProcess,
                 .source = wire::Source::kEbpf,
                 .flags = wire::flag::kNoStamp,
                 .thread = child_.pid,
                 .process = child_.pid,
                 .parent = ::getpid(),
                 .time_ns = monotonic_ns()});
    return {};
  }

  std::size_t take() {
    const EbpfMessages::EventHandler append = [&](const Event& event) {
      // The command's own exit is reported by the reaper, after all its other events.
      if (event.op != wire::RecordOp::kExit || event.process != child_.pid) log_.append(event);
    };
    return intake_->take(
        [&](const assay_message& message, std::string_view names, std::string_view other) {
          messages_.receive(message, names, other, append);
        },
        kRound);
  }

  // Takes all earlier events, because a call that is stopped at the gate comes after them.
  void take_all() {
    while (take() == kRound) {
    }
  }

  // Frees the ring before the sink's finish(), which needs the most memory.
  void finish_taking() {
    programs_.stop();
    take_all();
    intake_.reset();
    programs_.release_ring();
  }

  // A file that moves is another file to the programs; files below a directory that moves are not.
  void note(const CallEffect::ExpectedEvent& event) {
    if (event.op != wire::RecordOp::kRename || !is_directory(event.path)) return;
    programs_.shared().epoch = programs_.shared().epoch + 1;
  }

  base::Result<void> loop(const Launch& launch, const CollectorCallbacks& control, Reaper& reaper) {
    ExecWatch watch(launch, child_);
    bool gate_open = true;
    bool recording = true;
    bool watched = true;
    int wait_ms = kShortestRingWait_ms;
    while (gate_open || !reaper.ended() || (recording && programs_.shared().live > 0)) {
      std::array<pollfd, 5> waiting{{{gate_open ? gate_.listener() : -1, POLLIN, 0},
                                     {reaper.descriptor(), POLLIN, 0},
                                     {watch.descriptor(), POLLIN, 0},
                                     {watched ? control.keeper : -1, POLLIN, 0},
                                     {recording ? programs_.descriptor() : -1, POLLIN, 0}}};
      ::poll(waiting.data(), waiting.size(), wait_ms);
      if (waiting[0].revents != 0) {
        gate_open = recording ? gate_.serve(log_, sink_) : allow_all_calls(gate_.listener(), 0);
      }
      ASSAY_TRY(const bool began, watch.began());
      if (began) control.started(child_.pid, gate_.listener());
      const std::size_t taken = recording ? take() : 0;
      if (waiting[1].revents != 0) {
        if (recording) take_all();
        if (reaper.reap(child_.pid, log_)) control.ended(reaper.status());
      }
      if (recording) log_.drain(sink_);
      if (waiting[3].revents != 0) watched = false;
      if (waiting[3].revents != 0 && !control.detached()) {
        finish_taking();
        log_.drain(sink_);
        control.abandoned();
        recording = false;
      }
      if (recording) sink_.on_tick();
      wait_ms = taken == kRound ? 0
                : taken > 0     ? kShortestRingWait_ms
                            : std::clamp(2 * wait_ms, kShortestRingWait_ms, kLongestRingWait_ms);
    }
    if (!recording) return {};
    finish_taking();
    log_.finish(sink_);
    return {};
  }

  EventLog& log_;
  EbpfPrograms& programs_;
  EventSink& sink_;
  std::optional<EbpfIntake> intake_;
  EbpfMessages messages_;
  Barrier barrier_;
  Gate gate_;
  Launched child_;
};

class EbpfCollector : public LoggingCollector {
 public:
  explicit EbpfCollector(std::filesystem::path log) : LoggingCollector(std::move(log)) {}

  base::Result<void> load() override {
    if (programs_) return {};
    ASSAY_TRY(EbpfPrograms programs, EbpfPrograms::load());
    programs_.emplace(std::move(programs));
    // Frees the memory used for reading the kernel's types: the command is forked from this
    // process, and its peak memory would include this.
    ::malloc_trim(0);
    return {};
  }

  base::Result<void> prepare() override {
    ASSAY_TRY_VOID(load());
    return LoggingCollector::prepare();
  }

  base::Result<CollectorResult> run(const Launch& launch, const CollectorCallbacks& control,
                                    EventSink& sink) override {
    ASSAY_TRY(EventLog* const log, log_for(launch));
    return EbpfRun(*log, *programs_, sink).run(launch, control);
  }

 private:
  std::optional<EbpfPrograms> programs_;
};

}  // namespace

std::unique_ptr<Collector> make_ebpf_collector(const std::filesystem::path& log) {
  return std::make_unique<EbpfCollector>(log);
}

}  // namespace assay::collect
