// assay top: running runs and this machine's GPUs, as tables, JSON, or a page for Prometheus.
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <mutex>
#include <thread>

#include "assay/shared/top_sampler.h"
#include "assay/shared/usage_text.h"
#include "assay/top/live_screen.h"
#include "assay/verbs.h"
#include "base/clock.h"
#include "base/number.h"
#include "base/prometheus.h"
#include "base/terminal.h"
#include "http/server.h"
#include "share/metrics_text.h"

namespace assay::cli {
namespace {

struct TopOptions {
  std::string interval = "1s";
  std::vector<std::string> listen;  // a list, so that an empty value differs from an absent one
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
  const auto number = base::parse_number<double>(text);
  const auto with_unit = base::parse_seconds(text);
  if (!number && !with_unit) return wrong("is not a time");
  const double seconds = number ? *number : with_unit->count();
  if (!(seconds >= kShortestInterval)) return wrong("is too short: at least 0.1 seconds");
  if (seconds > kLongestInterval) return wrong("is too long: at most a day");
  return static_cast<std::int64_t>(seconds * 1e9);
}

std::string frame(const share::UsageView& view, const std::optional<std::size_t>& columns) {
  const std::string head =
      fmt::format("{}  {} {}, {} {}", base::utc_text(base::system_clock().wall_ns()),
                  view.runs.size(), view.runs.size() == 1 ? "run" : "runs", view.gpus.size(),
                  view.gpus.size() == 1 ? "GPU" : "GPUs");
  return head + "\n\n" + top_text(view, columns);
}

base::Json document_of(const share::UsageView& view) {
  base::Json document = {{"time", base::utc_millis_text(base::system_clock().wall_ns())}};
  document.update(share::usage_json(view));
  return document;
}

base::ExitCode show_once(const Session& session, TopSampler& sampler, std::int64_t interval_ns) {
  const share::UsageSample before = sampler.sample();
  timespec left{.tv_sec = interval_ns / 1'000'000'000, .tv_nsec = interval_ns % 1'000'000'000};
  while (::nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
  const share::UsageView view = share::usage_view(&before, sampler.sample());
  session.print_json(document_of(view));
  session.print(frame(view, base::terminal_columns(STDOUT_FILENO)));
  return base::ExitCode::kYes;
}

base::ExitCode show_live(const Session& session, TopSampler& sampler, std::int64_t interval_ns) {
  const bool drawn = !session.json && !session.quiet && ::isatty(STDOUT_FILENO) == 1;
  LiveScreen screen(drawn);
  share::UsageSample before = sampler.sample();
  share::UsageView view = share::usage_view(nullptr, before);
  std::int64_t due = base::system_clock().monotonic_ns() + (drawn ? 0 : interval_ns);
  bool first = true;
  while (!screen.ended()) {
    const std::int64_t now = base::system_clock().monotonic_ns();
    if (now < due) {
      // After a resize the last view is drawn again.
      if (!screen.wait_until(due) && drawn && !screen.ended())
        screen.draw(frame(view, screen.columns()));
      continue;
    }
    if (!(drawn && first)) {
      share::UsageSample sample = sampler.sample();
      view = share::usage_view(&before, sample);
      before = std::move(sample);
    }
    if (drawn) {
      screen.draw(frame(view, screen.columns()));
    } else {
      session.print_json_line(document_of(view));
      session.print((first ? "" : "\n") + frame(view, std::nullopt));
      // A reader at the other end of a pipe gets it now. Output that cannot be written ends the
      // loop.
      if (finish_stdout() != 0) return base::ExitCode::kUnfit;
    }
    first = false;
    due = now + interval_ns;
  }
  return base::ExitCode::kYes;
}

// The page that the server's thread sends and the sampling thread replaces.
class MetricsPage {
 public:
  void set(std::string text) {
    const std::lock_guard lock(mutex_);
    text_ = std::move(text);
  }
  http::Response answer(const http::Request& request) {
    const std::lock_guard lock(mutex_);
    return http::single_page(
        request, "/metrics",
        {.content_type = std::string(base::kPrometheusContentType), .body = text_});
  }

 private:
  std::mutex mutex_;
  std::string text_;
};

base::Result<base::ExitCode> serve(const Session& session, TopSampler& sampler,
                                   std::int64_t interval_ns, const std::string& address) {
  MetricsPage page;
  ASSAY_TRY(http::Server server,
            http::Server::listen("top --listen", address, [&](const http::Request& request) {
              return page.answer(request);
            }));
  LiveScreen signals(false);  // before the thread starts, which must not receive them
  share::UsageSample before = sampler.sample();
  page.set(share::metrics_text(share::usage_view(nullptr, before)));
  std::thread thread([&] { server.run(); });
  if (!session.quiet) {
    base::write_stderr(fmt::format("assay: serving http://{}/metrics\n", server.address()));
  }
  while (!signals.ended()) {
    const std::int64_t due = base::system_clock().monotonic_ns() + interval_ns;
    while (!signals.wait_until(due) && !signals.ended()) {
    }
    if (signals.ended()) break;
    share::UsageSample sample = sampler.sample();
    page.set(share::metrics_text(share::usage_view(&before, sample)));
    before = std::move(sample);
  }
  server.stop();
  thread.join();
  return base::ExitCode::kYes;
}

base::Result<base::ExitCode> top(const Session& session, const TopOptions& options) {
  ASSAY_TRY(const std::int64_t interval_ns, interval_of(options.interval));
  if (!options.listen.empty() && (options.once || session.json)) {
    return base::fail(base::usage_error("top --listen",
                                        "it serves until interrupted, and prints nothing",
                                        "leave out --once and --json"));
  }
  ASSAY_TRY(TopSampler sampler, TopSampler::open());
  if (!options.listen.empty()) return serve(session, sampler, interval_ns, options.listen.back());
  return options.once ? show_once(session, sampler, interval_ns)
                      : show_live(session, sampler, interval_ns);
}

}  // namespace

Verb top_verb(const Session& session) {
  const auto given = std::make_shared<TopOptions>();
  return {
      .name = "top",
      .description =
          "show running runs and GPUs: CPU, memory, training progress, GPU shares and activity",
      .examples = {"assay top --once --interval 0.1", "assay top --once --json --interval 100ms"},
      .options =
          {{"--interval",
            "time between samples; default: 1 second",
            &given->interval,
            {},
            "SECONDS"},
           {"--once", "print one sample and exit", &given->once},
           {"--listen",
            "serve http://HOST:PORT/metrics for Prometheus instead; without HOST, on the loopback "
            "interface",
            &given->listen,
            {},
            "[HOST:]PORT",
            false,
            true}},
      .action = [&session, given] { return top(session, *given); }};
}

}  // namespace assay::cli
