#include "assay-train/launch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <optional>

#include "assay-train/membership.h"
#include "base/error.h"
#include "base/process/exit_status.h"
#include "base/process/process.h"
#include "control/place.h"
#include "control/secret.h"
#include "control/socket.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// After one rank has failed: until the others are asked to end, and until they are made to.
constexpr std::chrono::seconds kToEnd{20};
constexpr std::chrono::seconds kToBeKilled{10};

std::atomic<int> passed_on = 0;

std::atomic<std::uint64_t> ignored = 0;  // signals that were, by number

bool was_ignored(int signal) {
  return ((ignored.load() >> static_cast<unsigned>(signal)) & 1U) != 0;
}

// Ctrl-C is sent by the terminal to the ranks as well; other signals to this process alone.
void pass_on(int signal, siginfo_t* info, void*) {
  if (signal == SIGINT && info->si_code == SI_KERNEL) return;
  passed_on = signal;
}

// Before the first rank: none must be left behind.
void catch_signals() {
  struct sigaction action {};
  action.sa_sigaction = pass_on;
  action.sa_flags = SA_SIGINFO;
  for (const int signal : {SIGTERM, SIGUSR1, SIGHUP, SIGINT}) {
    struct sigaction before {};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler == SIG_IGN) {
      ignored |= std::uint64_t{1} << static_cast<unsigned>(signal);
    } else {
      ::sigaction(signal, &action, nullptr);
    }
  }
}

struct Rank {
  base::Process process;
  std::optional<base::Exit> exit = std::nullopt;
};

class Ranks {
 public:
  base::Result<void> start(const LaunchOptions& options) {
    ASSAY_TRY(const control::Listener listener, control::listen_at({"127.0.0.1", 0}));
    // Rank 0 inherits the socket, so that no other program can take the port in between.
    const int flags = ::fcntl(listener.socket.get(), F_GETFD);
    ::fcntl(listener.socket.get(), F_SETFD, flags & ~FD_CLOEXEC);
    const control::Secret secret = control::Secret::random();
    const std::string job = fmt::format("{}:{}", job_name(options.out), ::getpid());
    // Ranks leave alone what this process was told to ignore (nohup).
    sigset_t changed = base::all_signals();
    for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGUSR1}) {
      if (was_ignored(signal)) ::sigdelset(&changed, signal);
    }
    std::error_code unknown;  // by its own name, which ps shows
    const std::string program = fs::read_symlink("/proc/self/exe", unknown).string();
    for (int rank = 0; rank < options.ranks; ++rank) {
      control::Place place{.rank = rank,
                           .ranks = options.ranks,
                           .local_rank = rank,
                           .local_ranks = options.ranks,
                           .rendezvous = control::Endpoint{"127.0.0.1", listener.port},
                           .job = job};
      if (rank == 0) place.listener_fd = listener.socket.get();
      base::ProcessOptions process{.arguments = options.arguments,
                                   .environment = base::Environment::from_current(),
                                   .program = program,
                                   .own_group = false,
                                   .default_signals = changed};
      for (const auto& [name, value] : control::place_variables(place)) {
        process.environment.set(name, value);
      }
      process.environment.set("ASSAY_JOB_SECRET", secret.text());
      if (rank > 0) {
        const int log = O_WRONLY | O_CREAT | (options.append_logs ? O_APPEND : O_TRUNC);
        process.redirections = {
            base::from_null(STDIN_FILENO),
            {.descriptor = STDOUT_FILENO, .path = log_of(options.out, rank), .flags = log},
            {.descriptor = STDERR_FILENO, .from = STDOUT_FILENO},
            {.descriptor = listener.socket.get(), .path = "/dev/null"}};
      }
      ASSAY_TRY(base::Process started, base::Process::start(std::move(process)));
      ranks_.push_back({std::move(started)});
    }
    return {};
  }

  // Until all have ended.
  void watch() {
    std::optional<Clock::time_point> limit;
    bool asked = false;
    while (running() > 0) {
      wait_a_moment();
      if (const int signal = passed_on.exchange(0); signal != 0) send(signal);
      for (std::size_t i = 0; i < ranks_.size(); ++i) take_exit(i);
      if (first_failed_ && !limit) limit = Clock::now() + kToEnd;
      if (!limit || Clock::now() < *limit) continue;
      send(asked ? SIGKILL : SIGTERM);
      asked = true;
      limit = Clock::now() + kToBeKilled;
    }
  }

  [[nodiscard]] std::size_t decisive() const {
    const bool rank_0_failed = ranks_[0].exit->wait_status != 0;
    return rank_0_failed ? 0 : first_failed_.value_or(0);
  }
  [[nodiscard]] int wait_status(std::size_t rank) const { return ranks_[rank].exit->wait_status; }
  template <class Number>
  static std::string log_of(const fs::path& out, Number rank) {
    return (out / "ranks" / fmt::format("rank-{}.log", rank)).string();
  }

 private:
  [[nodiscard]] std::size_t running() const {
    std::size_t count = 0;
    for (const Rank& rank : ranks_) count += rank.exit ? 0U : 1U;
    return count;
  }
  void wait_a_moment() const {
    std::vector<pollfd> list;
    for (const Rank& rank : ranks_) {
      if (!rank.exit) list.push_back({rank.process.descriptor(), POLLIN, 0});
    }
    constexpr int kMoment_ms = 200;  // signals and limits are looked at this often
    ::poll(list.data(), list.size(), kMoment_ms);
  }
  void take_exit(std::size_t i) {
    Rank& rank = ranks_[i];
    if (rank.exit) return;
    rank.exit = rank.process.wait_until(Clock::now());
    if (rank.exit && rank.exit->wait_status != 0 && !first_failed_) first_failed_ = i;
  }
  void send(int signal) const {
    for (const Rank& rank : ranks_) {
      if (!rank.exit) rank.process.signal(signal);
    }
  }

  std::vector<Rank> ranks_;
  std::optional<std::size_t> first_failed_;
};

}  // namespace

base::Result<base::ExitCode> launch_ranks(const LaunchOptions& options) {
  std::error_code error;
  fs::create_directories(options.out / "ranks", error);
  if (error) {
    return base::fail(
        base::unfit_error(options.out / "ranks", "cannot be created: " + error.message()));
  }
  catch_signals();
  Ranks ranks;
  ASSAY_TRY_VOID(ranks.start(options));
  ranks.watch();
  const std::size_t decisive = ranks.decisive();
  const int status = ranks.wait_status(decisive);
  if (status == 0) return base::ExitCode::kYes;
  // Rank 0 has printed why, unless it was killed; of another one it is in its log.
  if (base::signal_of(status) || decisive != 0) {
    return base::fail(
        base::failed_error(fmt::format("rank {}", decisive), base::exit_text(status),
                           decisive == 0 ? "" : "see " + Ranks::log_of(options.out, decisive)));
  }
  ::_exit(base::shell_exit_code(status));
}

}  // namespace assay::cli
