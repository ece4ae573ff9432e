#include "assay-train/launch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <optional>

#include "assay-train/membership.h"
#include "base/error.h"
#include "base/json.h"
#include "base/process/exit_status.h"
#include "base/process/process.h"
#include "base/process/program.h"
#include "base/unique_fd.h"
#include "control/rank_assignment.h"
#include "control/secret.h"
#include "control/socket.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// After one rank has failed: how long until the others get SIGTERM, and from then until SIGKILL.
constexpr std::chrono::seconds kToEnd{20};
constexpr std::chrono::seconds kToBeKilled{10};

std::atomic<int> passed_on = 0;

std::atomic<std::uint64_t> ignored_signals = 0;  // bit mask by signal number

bool was_ignored(int signal) {
  return ((ignored_signals.load() >> static_cast<unsigned>(signal)) & 1U) != 0;
}

// The terminal sends Ctrl-C to the ranks as well; other signals reach only this process.
void pass_on(int signal, siginfo_t* info, void*) {
  if (signal == SIGINT && info->si_code == SI_KERNEL) return;
  passed_on = signal;
}

// Called before the first rank starts, so that no signal can leave a rank behind.
void catch_signals() {
  struct sigaction action {};
  action.sa_sigaction = pass_on;
  action.sa_flags = SA_SIGINFO;
  for (const int signal : {SIGTERM, SIGUSR1, SIGHUP, SIGINT}) {
    struct sigaction before {};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler == SIG_IGN) {
      ignored_signals |= std::uint64_t{1} << static_cast<unsigned>(signal);
    } else {
      ::sigaction(signal, &action, nullptr);
    }
  }
}

// Rank 0 sends its error through a pipe.
constexpr const char* kErrorVariable = "ASSAY_ERROR_FD";

constexpr std::size_t kMostError = 16384;  // far less than the capacity of a pipe

struct ErrorPipe {
  base::UniqueFd read;
  base::UniqueFd write;  // inherited by rank 0

  static base::Result<ErrorPipe> make() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
      return base::fail(base::system_error("assay train", "cannot create a pipe", errno));
    }
    ::fcntl(ends[1], F_SETFD, 0);
    return ErrorPipe{base::UniqueFd(ends[0]), base::UniqueFd(ends[1])};
  }

  // Call when rank 0 has ended.
  [[nodiscard]] std::optional<base::Error> take() const {
    std::array<char, kMostError> bytes{};
    const ssize_t count = ::read(read.get(), bytes.data(), bytes.size());
    if (count <= 0) return std::nullopt;
    const base::Json json = base::Json::parse(bytes.data(), bytes.data() + count, nullptr, false);
    if (!json.is_object()) return std::nullopt;
    return base::Error{.code = static_cast<base::ExitCode>(json.value("code", 1)),
                       .where = json.value("where", ""),
                       .what = json.value("what", ""),
                       .hint = json.value("hint", "")};
  }
};

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
    ASSAY_TRY(errors_, ErrorPipe::make());
    const control::Secret secret = control::Secret::random();
    const std::string job = fmt::format("{}:{}", job_name(options.out), ::getpid());
    // Signals that this process ignores (nohup) stay ignored in the ranks.
    sigset_t changed = base::all_signals();
    for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGUSR1}) {
      if (was_ignored(signal)) ::sigdelset(&changed, signal);
    }
    const std::string program = base::own_program().string();  // its own name, which ps shows
    for (int rank = 0; rank < options.ranks; ++rank) {
      control::RankAssignment assignment{.rank = rank,
                                         .ranks = options.ranks,
                                         .local_rank = rank,
                                         .local_ranks = options.ranks,
                                         .rendezvous = base::HostPort{"127.0.0.1", listener.port},
                                         .job = job};
      if (rank == 0) assignment.listener_fd = listener.socket.get();
      base::ProcessOptions process{.arguments = options.arguments,
                                   .environment = base::Environment::from_current(),
                                   .program = program,
                                   .own_group = false,
                                   .default_signals = changed};
      for (const auto& [name, value] : control::rank_variables(assignment)) {
        process.environment.set(name, value);
      }
      process.environment.set("ASSAY_JOB_SECRET", secret.text());
      if (rank == 0) {
        process.environment.set(kErrorVariable, fmt::format("{}", errors_.write.get()));
      } else {
        process.environment.unset(kErrorVariable);
        const int log = O_WRONLY | O_CREAT | (options.append_logs ? O_APPEND : O_TRUNC);
        process.redirections = {
            base::from_null(STDIN_FILENO),
            {.descriptor = STDOUT_FILENO, .path = log_of(options.out, rank), .flags = log},
            {.descriptor = STDERR_FILENO, .from = STDOUT_FILENO},
            {.descriptor = listener.socket.get(), .path = "/dev/null"},
            {.descriptor = errors_.write.get(), .path = "/dev/null"}};
      }
      ASSAY_TRY(base::Process started, base::Process::start(std::move(process)));
      ranks_.push_back({std::move(started)});
    }
    errors_.write.reset();
    return {};
  }

  // Returns when all ranks have ended.
  void watch() {
    std::optional<Clock::time_point> limit;
    bool terminated = false;
    while (running() > 0) {
      wait_a_moment();
      if (const int signal = passed_on.exchange(0); signal != 0) {
        signalled_ = true;
        send(signal);
      }
      for (std::size_t i = 0; i < ranks_.size(); ++i) take_exit(i);
      if (first_failed_ && !limit) limit = Clock::now() + kToEnd;
      if (!limit || Clock::now() < *limit) continue;
      signalled_ = true;
      send(terminated ? SIGKILL : SIGTERM);
      terminated = true;
      limit = Clock::now() + kToBeKilled;
    }
  }

  // The rank whose end explains the others': one killed by a signal that was not ours; else rank 0,
  // which was told the reason; else the first that failed.
  [[nodiscard]] std::size_t deciding_rank() const {
    if (killed_) return *killed_;
    const bool rank_0_failed = ranks_[0].exit->wait_status != 0;
    return rank_0_failed ? 0 : first_failed_.value_or(0);
  }
  // Rank 0's error; nothing if it has printed it itself, or has none.
  [[nodiscard]] std::optional<base::Error> error() const { return errors_.take(); }
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
    constexpr int kMoment_ms = 200;  // how often signals and timeouts are checked
    ::poll(list.data(), list.size(), kMoment_ms);
  }
  void take_exit(std::size_t i) {
    Rank& rank = ranks_[i];
    if (rank.exit) return;
    rank.exit = rank.process.wait_until(Clock::now());
    if (!rank.exit || rank.exit->wait_status == 0) return;
    if (!first_failed_) first_failed_ = i;
    if (!killed_ && !signalled_ && base::signal_of(rank.exit->wait_status)) killed_ = i;
  }
  void send(int signal) const {
    for (const Rank& rank : ranks_) {
      if (!rank.exit) rank.process.signal(signal);
    }
  }

  std::vector<Rank> ranks_;
  std::optional<std::size_t> first_failed_;
  std::optional<std::size_t> killed_;
  bool signalled_ = false;  // this process has sent signals to ranks
  ErrorPipe errors_;
};

}  // namespace

base::Result<LaunchEnd> launch_ranks(const LaunchOptions& options) {
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
  const std::size_t deciding_rank = ranks.deciding_rank();
  const int status = ranks.wait_status(deciding_rank);
  if (status == 0) return LaunchEnd{};
  const bool killed = base::signal_of(status).has_value();
  if (deciding_rank == 0 && !killed) {
    if (auto given = ranks.error()) return LaunchEnd{.error = std::move(given)};
    return LaunchEnd{.code = base::shell_exit_code(status)};
  }
  return LaunchEnd{
      .error = base::failed_error(
          fmt::format("rank {}", deciding_rank), base::exit_text(status),
          deciding_rank == 0 ? "" : "see " + Ranks::log_of(options.out, deciding_rank)),
      .log_is_named = deciding_rank != 0};
}

bool send_error_to_launcher(const base::Error& error) {
  const char* text = std::getenv(kErrorVariable);
  if (text == nullptr) return false;
  const int descriptor = std::atoi(text);
  const std::string line = base::Json{{"where", error.where},
                                      {"what", error.what},
                                      {"hint", error.hint},
                                      {"code", static_cast<int>(error.code)}}
                               .dump(-1, ' ', false, base::Json::error_handler_t::replace);
  if (line.size() > kMostError) return false;
  return ::write(descriptor, line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

}  // namespace assay::cli
