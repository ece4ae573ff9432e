#include "observe/collect/gate/preload.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>

#include "base/file.h"
#include "base/process/environment.h"
#include "base/process/program.h"
#include "observe/collect/event/log.h"
#include "observe/collect/gate/gate.h"
#include "observe/collect/process/ends.h"
#include "observe/collect/process/launch.h"
#include "observe/collect/process/reaper.h"

namespace assay::collect {
namespace {

// How long shim records may wait for a look when nothing else happens. Reads are hashed from then
// on, so it is short at first and grows while the command is quiet.
constexpr int kShortestWait_ms = 5;
constexpr int kLongestWait_ms = 100;

// The command's environment with the shim.
base::Environment with_shim(base::Environment environment, const std::string& shim,
                            const std::string& log) {
  // Last: other libraries that change what a program opens come before us, so that we see what
  // they have made of it.
  environment.add_to_list("LD_PRELOAD", shim, base::Environment::Place::kLast);
  // A program built with AddressSanitizer refuses to start behind any preloaded library, because it
  // cannot know that ours leaves memory functions alone.
  environment.add_to_list("ASAN_OPTIONS", "verify_asan_link_order=0",
                          base::Environment::Place::kFirst);
  environment.set(wire::kLogVariable, log);
  return environment;
}

class PreloadCollector : public Collector {
 public:
  explicit PreloadCollector(std::filesystem::path log) : path_(std::move(log)) {}

  base::Result<void> prepare() override {
    ASSAY_TRY(Log log, Log::create(path_));
    log_.emplace(std::move(log));
    return {};
  }

  base::Result<Outcome> run(const Launch& launch, const Control& control, Sink& sink) override {
    if (!log_) ASSAY_TRY_VOID(prepare());
    Log& log = *log_;
    log.keep_words(launch.keep_words);
    Gate gate(GateMode::kEverything, path_);
    Launch shimmed = launch;
    if (const auto shim = shim_library(); !shim.empty()) {
      shimmed.environment = with_shim(std::move(shimmed.environment), shim, path_);
    }
    Reaper reaper;
    ASSAY_TRY(Launched child, collect::launch(shimmed, [&] { return gate.install(); }));
    if (!gate.receive()) return base::fail(gate_failure(launch, child));
    append_inherited(launch.inherited, child.pid, log);
    log.drain(sink);  // while the command waits to begin: it may be about to write into these
    ASSAY_TRY_VOID(loop(launch, control, sink, log, gate, reaper, child));
    Outcome outcome = reaper.outcome();
    outcome.dropped = log.header().dropped;
    if (log.torn() > 0) {
      outcome.missed.push_back(
          {"torn",
           fmt::format("{} records were being written when their process was killed", log.torn())});
    }
    return outcome;
  }

 private:
  base::Result<void> loop(const Launch& launch, const Control& control, Sink& told, Log& log,
                          Gate& gate, Reaper& reaper, Launched& child) {
    Ends ends(child.pid, told);
    Sink& sink = ends;
    ExecWatch watch(launch, child);
    bool gate_open = true;
    bool kept = true;
    bool watched = true;
    int wait_ms = kShortestWait_ms;
    while (gate_open || !reaper.ended()) {
      std::array<pollfd, 4> waiting{{{gate_open ? gate.listener() : -1, POLLIN, 0},
                                     {reaper.descriptor(), POLLIN, 0},
                                     {watch.descriptor(), POLLIN, 0},
                                     {watched ? control.keeper : -1, POLLIN, 0}}};
      const int ready = ::poll(waiting.data(), waiting.size(), wait_ms);
      if (waiting[0].revents != 0) {
        gate_open = kept ? gate.serve(log, sink) : wave_through(gate.listener(), 0);
      }
      ASSAY_TRY(const bool began, watch.began());
      if (began) control.started(child.pid, gate.listener());
      if (kept && ready == 0) ends.idle(log);
      if (waiting[1].revents != 0 && reaper.reap(child.pid, log)) control.ended(reaper.status());
      if (waiting[3].revents != 0) {
        watched = false;
        kept = control.detached();
        if (!kept) {
          log.drain(sink);
          control.abandoned();
        }
      }
      const bool busy = (kept && log.drain(sink) > 0) || ready > 0;
      if (kept) sink.meanwhile();
      wait_ms = busy ? kShortestWait_ms : std::min(2 * wait_ms, kLongestWait_ms);
    }
    if (!kept) return {};
    log.drain(sink);
    ends.finish(log);
    log.finish(told);
    return {};
  }

  std::filesystem::path path_;
  std::optional<Log> log_;
};

}  // namespace

std::unique_ptr<Collector> make_preload_collector(const std::filesystem::path& log) {
  return std::make_unique<PreloadCollector>(log);
}

std::filesystem::path library_beside(std::string_view name) {
  const auto folder = base::own_program().parent_path();
  if (folder.empty()) return {};
  for (const auto& place : {folder, folder.parent_path() / "lib" / "assay", folder.parent_path()}) {
    auto library = place / name;
    // LD_PRELOAD is a list that knows no quoting.
    if (library.native().find_first_of(" :") != std::string::npos) continue;
    if (::access(library.c_str(), R_OK) == 0) return library;
  }
  return {};
}

std::filesystem::path shim_library() {
  return library_beside("libassay-shim.so");
}

}  // namespace assay::collect
