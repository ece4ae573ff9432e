// assay compare: what does B add to A? Runs commands in random order until the answer is precise
// enough, and judges it against a margin.
#include <fmt/format.h>

#include <memory>

#include "assay/compare/options.h"
#include "assay/compare/print.h"
#include "assay/project.h"
#include "assay/verbs.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/progress.h"
#include "base/stderr_line.h"
#include "base/text.h"
#include "compare/conduct.h"
#include "compare/findings.h"
#include "compare/looks.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

// How far the experiment is, on one line that comes and goes.
class CompareLine {
 public:
  CompareLine(const compare::StopRule& rule, bool quiet)
      : rule_(rule), shown_(!quiet && terminal_.is_terminal()) {}
  CompareLine(const CompareLine&) = delete;
  CompareLine& operator=(const CompareLine&) = delete;
  ~CompareLine() {
    if (drawn_) terminal_.write(base::kClearLine);
    base::progress_on_stderr = false;
  }

  void show(const compare::Standing& standing) {
    const std::int64_t now = base::system_clock().monotonic_ns();
    if (!shown_ || now < next_ns_) return;
    next_ns_ = now + kEveryNs;
    drawn_ = true;
    base::progress_on_stderr = true;
    terminal_.write(std::string(base::kClearLine) +
                    base::shortened(line_of(standing), terminal_.columns() - 1));
  }

 private:
  static constexpr std::int64_t kEveryNs = 100'000'000;

  [[nodiscard]] std::string line_of(const compare::Standing& s) const {
    std::string line = fmt::format("pair {}", s.estimate.pairs);
    if (s.estimate.method != compare::Method::kNone) {
      line += fmt::format("  {} ± {:.2f} % (to {:g} %)",
                          percent_text(compare::percent(s.estimate.centre)),
                          s.estimate.half_width_pct(), rule_.half_width_pct);
    }
    line += "  " + base::to_text(s.elapsed);
    if (s.left) line += ", about " + base::to_text(*s.left) + " left";
    return line;
  }

  const compare::StopRule rule_;
  base::ProgressTerminal& terminal_ = base::stderr_terminal();
  const bool shown_;
  bool drawn_ = false;
  std::int64_t next_ns_ = 0;
};

base::Result<void> keep_look(const compare::Look& look, compare::Measured& measured,
                             compare::Journal& journal) {
  // Without a pair there was nothing to see.
  if (look.pairs == 0 || (!measured.looks.empty() && look == measured.looks.back())) return {};
  ASSAY_TRY_VOID(journal.add(look));
  measured.looks.push_back(look);
  return {};
}

// Who was killed may have shown how it stands: that is a look, too.
base::Result<void> note_unseen_end(compare::Measured& measured, compare::Journal& journal) {
  const std::int64_t seen = measured.looks.empty() ? 0 : measured.looks.back().run;
  if (measured.last_run() == seen) return {};
  return keep_look(
      compare::look_at(measured, compare::Stop::kNo, compare::widest_estimate(measured).pairs),
      measured, journal);
}

base::Result<compare::Journal> go_on(const CompareWords& words, compare::Measured& measured) {
  const fs::path directory = fs::absolute(words.resume);
  ASSAY_TRY(compare::Journal journal, compare::Journal::open(directory, measured));
  ASSAY_TRY_VOID(note_unseen_end(measured, journal));
  compare::RuleChange change{.pairs = compare::widest_estimate(measured).pairs,
                             .from = {measured.experiment.stop, measured.experiment.judgement}};
  ASSAY_TRY_VOID(change_experiment(words, measured.experiment));
  change.to = {measured.experiment.stop, measured.experiment.judgement};
  if (change.from != change.to) {
    ASSAY_TRY_VOID(journal.add(change));
    measured.changes.push_back(change);
  }
  std::error_code error;
  fs::current_path(measured.experiment.directory, error);
  if (error) {
    return base::fail(
        base::unfit_error(measured.experiment.directory, "the commands ran there, and it is gone"));
  }
  return journal;
}

base::Result<compare::Journal> begin(const CompareWords& words, compare::Measured& measured) {
  ASSAY_TRY(measured.experiment, experiment_of(words));
  ASSAY_TRY(const fs::path folder, kept_folder("compare", words.output));
  return compare::Journal::create(folder, measured.experiment);
}

base::ExitCode exit_code(compare::Verdict verdict) {
  switch (verdict) {
    case compare::Verdict::kPass:
      return base::ExitCode::kYes;
    case compare::Verdict::kFail:
      return base::ExitCode::kNo;
    case compare::Verdict::kInconclusive:
      break;
  }
  return base::ExitCode::kInconclusive;
}

// What would change something: a rule that is met already ends an experiment before it has begun.
std::string how_to_go_on(const compare::Measured& measured, const compare::Conducted& conducted,
                         const fs::path& directory) {
  std::string command =
      fmt::format("assay compare --resume {}", base::shell_quoted(directory.string()));
  const compare::StopRule& rule = measured.experiment.stop;
  if (conducted.stop == compare::Stop::kPairs) {
    command += fmt::format(" --max-pairs {}", 2 * rule.max_pairs);
  } else if (conducted.stop == compare::Stop::kNarrow) {
    command += fmt::format(" --half-width {:g}%", rule.half_width_pct / 2);
  }
  return command;
}

base::Result<compare::Conducted> conduct_watched(const Session& session,
                                                 compare::Measured& measured,
                                                 compare::Journal& journal, compare::Host& host) {
  ASSAY_TRY(compare::Interrupts interrupts, compare::Interrupts::watch());
  CompareLine line(measured.experiment.stop, session.quiet);
  return compare::conduct(measured, journal, host, interrupts,
                          [&](const compare::Standing& s) { line.show(s); });
}

base::Result<base::ExitCode> compare_arms(const Session& session, const CompareWords& words) {
  compare::Measured measured;
  ASSAY_TRY(compare::Journal journal,
            words.resume.empty() ? begin(words, measured) : go_on(words, measured));
  compare::Host host;
  measured.sittings.push_back(sitting_in(measured.experiment.directory, host.preflight()));
  ASSAY_TRY_VOID(journal.add(measured.sittings.back()));
  ASSAY_TRY(compare::Conducted conducted, conduct_watched(session, measured, journal, host));
  const compare::Look look = compare::look_at(measured, conducted.stop, conducted.estimate.pairs);
  ASSAY_TRY_VOID(keep_look(look, measured, journal));
  const Compared compared{.measured = measured,
                          .findings = compare::findings_of(measured, look.share),
                          .stop = conducted.stop,
                          .preflight = measured.sittings.back().preflight,
                          .directory = journal.directory(),
                          .failure = conducted.failure ? conducted.failure->line() : ""};
  const base::Json document = compared_json(compared);
  ASSAY_TRY_VOID(
      base::replace_file(journal.directory() / "result.json", base::json_text(document)));
  session.print_json(document);
  if (conducted.failure) {
    if (conducted.estimate.pairs > 0) print_compared(session, compared);
    return base::fail(*std::move(conducted.failure));
  }
  print_compared(session, compared);
  if (compared.findings.verdict == compare::Verdict::kInconclusive) {
    session.next(how_to_go_on(measured, conducted, journal.directory()));
  }
  return exit_code(compared.findings.verdict);
}

std::vector<std::string> metric_words() {
  return {"wall", "cpu", "regex:", "json:", "stored:"};
}

std::vector<Option> compare_options(CompareWords& w) {
  return {
      {"--a", "the baseline", &w.a, {}, "COMMAND"},
      {"--b", "what is compared with it", &w.b, {}, "COMMAND"},
      {"--arm", "another arm; repeatable", &w.arms, {}, "NAME=COMMAND"},
      {"--under", "compare COMMAND with COMMAND under this", &w.under, {}, "WRAPPER"},
      {"--file", "an experiment in TOML", &w.file, {}, "FILE", true},
      {"--metric", "wall, cpu, regex:PATTERN, json:PATH or stored:NAME; default: wall", &w.metric,
       metric_words, "METRIC"},
      {"--steps",
       "compare step by step: regex:PATTERN with two groups, json:STEP,VALUE or stored:NAME",
       &w.steps,
       {},
       "WHERE"},
      {"--step-unit", "of a step's time; default: s", &w.step_unit,
       [] {
         return std::vector<std::string>{"s", "ms", "us"};
       },
       "UNIT"},
      {"--quality", "a number that should stay as it is, found like a metric", &w.quality,
       metric_words, "METRIC"},
      {"--margin", "how much worse B may be; default: 1%", &w.margin, {}, "PERCENT"},
      {"--more-is-better", "the metric is a throughput", &w.more_is_better},
      {"--half-width",
       "stop when the interval is ± this; default: 0.25%",
       &w.half_width,
       {},
       "PERCENT"},
      {"--max-time", "stop after this; default: 10min", &w.max_time, {}, "TIME"},
      {"--min-pairs", "before a narrow interval is believed; default: 20", &w.min_pairs, {}, "N"},
      {"--max-pairs", "stop after so many", &w.max_pairs, {}, "N"},
      {"--warm-up",
       "blocks at the beginning that do not count; default: found out",
       &w.warm_up,
       {},
       "N"},
      {"--timeout", "of one run", &w.timeout, {}, "TIME"},
      {"--prepare", "run before every run, not timed", &w.prepare, {}, "COMMAND"},
      {"--cleanup", "run after every run, not timed", &w.cleanup, {}, "COMMAND"},
      {"--no-second-baseline", "do not run A twice per block: no noise floor",
       &w.no_second_baseline},
      {"--seed", "of the order of runs; default: another one every time", &w.seed, {}, "N"},
      {"-o,--output",
       "folder for runs and results; default: in the project, or temporary",
       &w.output,
       {},
       "DIR",
       true},
      {"--resume", "go on with the experiment in this folder", &w.resume, {}, "DIR", true}};
}

}  // namespace

Verb compare_verb(const Session& session) {
  const auto words = std::make_shared<CompareWords>();
  return {
      .name = "compare",
      .description = "what B adds to A: paired runs in random order, an interval, a verdict",
      .examples =
          {"assay compare --a 'sleep 0.2' --b 'sleep 0.01' --max-pairs 6 --no-second-baseline",
           "assay compare --under 'nice -n 1' --metric 'regex:[0-9]+' --max-pairs 6 -- echo 100",
           "assay compare --a 'echo speed 100' --b 'echo speed 101' --metric "
           "'regex:speed ([0-9.]+)' --more-is-better --max-pairs 8"},
      .options = compare_options(*words),
      .wrapped = {"COMMAND", "with --under: the command and its arguments", &words->command},
      .action = [&session, words] { return compare_arms(session, *words); }};
}

}  // namespace assay::cli
