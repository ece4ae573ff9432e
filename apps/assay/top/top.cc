// assay top: the runs that use this machine's GPUs, and the GPUs, as they are now; and the same for
// Prometheus.
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <memory>

#include "assay/top/live_screen.h"
#include "assay/top/print.h"
#include "assay/top/watch.h"
#include "assay/verbs.h"
#include "base/clock.h"
#include "base/terminal.h"
#include "share/metrics_server.h"
#include "share/metrics_text.h"

namespace assay::cli {
namespace {

struct TopOptions {
  std::string interval = "1s";
  std::vector<std::string> listen;  // a list, so that an empty one can be told from none
  bool once = false;
};

constexpr double kShortestInterval = 0.1;
constexpr double kLongestInterval = 86400;

// "2", "2s", "500ms"; in nanoseconds.
base::Result<std::int64_t> interval_of(const std::string& text) {
  const auto wrong = [&](const std::string& what) {
    return base::fail(base::usage_error("top --interval", fmt::format("'{}' {}", text, what),
                                        "seconds, for example 2 or 500ms"));
  };
  double seconds = 0;
  const char* end = text.data() + text.size();
  if (const auto [stopped, error] = std::from_chars(text.data(), end, seconds);
      error != std::errc{} || stopped != end) {
    const auto parsed = base::parse_seconds(text);
    if (!parsed) return wrong("is no time");
    seconds = parsed->count();
  }
  if (!(seconds >= kShortestInterval)) return wrong("is too short: a tenth of a second at least");
  if (seconds > kLongestInterval) return wrong("is too long: a day at most");
  return static_cast<std::int64_t>(seconds * 1e9);
}

std::string frame(const share::View& view, const std::optional<std::size_t>& columns) {
  const std::string head =
      fmt::format("{}  {} {}, {} {}", base::utc_text(base::system_clock().wall_ns()),
                  view.runs.size(), view.runs.size() == 1 ? "run" : "runs", view.gpus.size(),
                  view.gpus.size() == 1 ? "GPU" : "GPUs");
  return head + "\n\n" + top_text(view, columns);
}

base::Json document_of(const share::View& view) {
  base::Json document = {{"time", base::utc_millis_text(base::system_clock().wall_ns())}};
  document.update(share::view_json(view));
  return document;
}

base::ExitCode show_once(const Session& session, TopWatch& watch, std::int64_t interval_ns) {
  const share::Look before = watch.look();
  timespec left{.tv_sec = interval_ns / 1'000'000'000, .tv_nsec = interval_ns % 1'000'000'000};
  while (::nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
  const share::View view = share::view_of(&before, watch.look());
  session.print_json(document_of(view));
  session.print(frame(view, base::terminal_columns(STDOUT_FILENO)));
  return base::ExitCode::kYes;
}

base::ExitCode show_live(const Session& session, TopWatch& watch, std::int64_t interval_ns) {
  const bool drawn = !session.json && !session.quiet && ::isatty(STDOUT_FILENO) == 1;
  LiveScreen screen(drawn);
  share::Look before = watch.look();
  share::View view = share::view_of(nullptr, before);
  std::int64_t due = base::system_clock().monotonic_ns() + (drawn ? 0 : interval_ns);
  bool first = true;
  while (!screen.ended()) {
    const std::int64_t now = base::system_clock().monotonic_ns();
    if (now < due) {
      // Also after the window was resized: what is known is drawn anew.
      if (!screen.wait_until(due) && drawn && !screen.ended())
        screen.draw(frame(view, screen.columns()));
      continue;
    }
    if (!(drawn && first)) {
      share::Look look = watch.look();
      view = share::view_of(&before, look);
      before = std::move(look);
    }
    if (drawn) {
      screen.draw(frame(view, screen.columns()));
    } else {
      session.print_json_line(document_of(view));
      session.print((first ? "" : "\n") + frame(view, std::nullopt));
      // Whoever reads this in a pipe reads it now; one that has gone ends it.
      if (std::fflush(stdout) != 0) return base::ExitCode::kNo;
    }
    first = false;
    due = now + interval_ns;
  }
  return base::ExitCode::kYes;
}

base::Result<base::ExitCode> serve(const Session& session, TopWatch& watch,
                                   std::int64_t interval_ns, const std::string& address) {
  ASSAY_TRY(share::MetricsServer server, share::MetricsServer::listen("top --listen", address));
  LiveScreen signals(false);
  if (!session.quiet) {
    base::write_stderr(fmt::format("assay: serving http://{}/metrics\n", server.address()));
  }
  share::Look before = watch.look();
  std::string text = share::metrics_text(share::view_of(nullptr, before));
  while (!signals.ended()) {
    const std::int64_t due = base::system_clock().monotonic_ns() + interval_ns;
    while (!server.serve_until(due, text, signals.mask()) && !signals.ended()) {
    }
    if (signals.ended()) break;
    share::Look look = watch.look();
    text = share::metrics_text(share::view_of(&before, look));
    before = std::move(look);
  }
  return base::ExitCode::kYes;
}

base::Result<base::ExitCode> top(const Session& session, const TopOptions& options) {
  ASSAY_TRY(const std::int64_t interval_ns, interval_of(options.interval));
  if (!options.listen.empty() && (options.once || session.json)) {
    return base::fail(base::usage_error("top --listen",
                                        "it serves until it is ended, and prints nothing",
                                        "leave out --once and --json"));
  }
  TopWatch watch;
  if (!options.listen.empty()) return serve(session, watch, interval_ns, options.listen.back());
  return options.once ? show_once(session, watch, interval_ns)
                      : show_live(session, watch, interval_ns);
}

}  // namespace

Verb top_verb(const Session& session) {
  const auto given = std::make_shared<TopOptions>();
  return {
      .name = "top",
      .description = "running runs and GPUs as they are now: memory, shares, launches, activity",
      .examples = {"assay top --once --interval 0.1", "assay top --once --json --interval 100ms"},
      .options =
          {{"--interval", "time between looks; default: 1 second", &given->interval, {}, "SECONDS"},
           {"--once", "look once and end", &given->once},
           {"--listen",
            "serve http://HOST:PORT/metrics for Prometheus instead; this machine only "
            "without HOST",
            &given->listen,
            {},
            "[HOST:]PORT"}},
      .action = [&session, given] { return top(session, *given); }};
}

}  // namespace assay::cli
