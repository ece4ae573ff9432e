// assay report [RUN|EXPERIMENT|SUITE|JOB…]: a page of what was run, compared, measured or planned.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>

#include "assay/project.h"
#include "assay/recorded_verb.h"
#include "assay/report/sources.h"
#include "assay/verbs.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/suggestion.h"
#include "base/text.h"
#include "base/units.h"
#include "report/html.h"
#include "report/markdown.h"
#include "report/run_exports.h"
#include "report/run_part.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> report_formats() {
  return {"html", "md", "json"};
}

// --format, or the output's extension.
base::Result<std::string> format_of(const ReportOptions& options) {
  const std::vector<std::string> known = report_formats();
  if (options.format.empty()) {
    const std::string extension = fs::path(options.output).extension().string();
    for (const std::string& format : known) {
      if (extension == "." + format) return format;
    }
    if (extension.empty() || extension == ".htm") return "html";
    return base::fail(base::usage_error(options.output,
                                        fmt::format("unknown format '{}'", extension.substr(1)),
                                        "use .html, .md or .json, or give --format"));
  }
  if (std::find(known.begin(), known.end(), options.format) != known.end()) return options.format;
  return base::fail(base::usage_error("report", fmt::format("unknown format '{}'", options.format),
                                      base::suggestion(options.format, known)));
}

// Opened for the first run: experiments and suites need no project.
class LazyStore {
 public:
  base::Result<store::Store*> get() {
    if (!store_) {
      ASSAY_TRY(store::Store opened, open_store());
      store_.emplace(std::move(opened));
    }
    return &*store_;
  }

 private:
  std::optional<store::Store> store_;
};

struct Gathered {
  std::vector<report::PagePart> parts;
  std::vector<report::ReportedRun> runs;  // only if --perfetto or --prometheus is given
};

struct Gathering {
  report::Rates rates;
  std::size_t most_points = 0;
  bool keep_runs = false;
  bool page = true;
  IfEmpty if_empty = IfEmpty::kFail;
  LazyStore store = {};
  Gathered gathered = {};
};

base::Result<void> add_run(Gathering& to, const std::string& name) {
  ASSAY_TRY(store::Store* const store, to.store.get());
  ASSAY_TRY(report::ReportedRun run, reported_run(*store, name, to.rates));
  if (to.page) to.gathered.parts.push_back(report::run_part(run, to.most_points));
  if (to.keep_runs) to.gathered.runs.push_back(std::move(run));
  return {};
}

// An experiment, a scan or a suite.
base::Result<void> add_measurement(Gathering& to, const fs::path& path) {
  if (is_scan(path)) {
    ASSAY_TRY(std::vector<report::PagePart> parts, scan_in(path, to.if_empty));
    for (report::PagePart& part : parts) to.gathered.parts.push_back(std::move(part));
    return {};
  }
  ASSAY_TRY(report::PagePart part,
            is_experiment(path) ? experiment_in(path, to.if_empty) : suite_in(path, to.if_empty));
  to.gathered.parts.push_back(std::move(part));
  return {};
}

// The last run; in a project without runs, its latest experiment, scan or suite with a result.
base::Result<void> add_latest(Gathering& to) {
  auto added = add_run(to, "last");
  if (added) return added;
  bool any = false;
  for (const fs::path& path : latest_measurements()) {
    auto measured = add_measurement(to, path);
    if (measured) return measured;
    if (!any) added = std::move(measured);  // the error of the latest
    any = true;
  }
  return added;
}

base::Result<void> add_plan(Gathering& to, const std::string& name) {
  const bool every_candidate = to.most_points > report::kMostEmbedded;
  ASSAY_TRY(report::PagePart part,
            is_plan(name) ? plan_in(name, every_candidate) : plan_of_job(name, every_candidate));
  to.gathered.parts.push_back(std::move(part));
  return {};
}

base::Result<void> add_named(Gathering& to, const std::string& name) {
  if (is_plan(name) || (name.ends_with(".toml") && is_job(name))) return add_plan(to, name);
  if (is_experiment(name) || is_scan(name) || is_suite(name)) return add_measurement(to, name);
  auto added = add_run(to, name);
  if (added) return added;
  // After runs: a run may have the name of a suite.
  const auto suite = latest_result(name);
  if (!suite && is_job(name)) return add_plan(to, name);
  if (!suite) return base::fail(unknown_name_error(name, std::move(added).error()));
  return add_measurement(to, *suite);
}

base::Result<Gathered> gather(const ReportOptions& options, std::size_t most_points, bool page) {
  ASSAY_TRY(const report::Rates rates, rates_of(options));
  Gathering gathering{.rates = rates,
                      .most_points = most_points,
                      .keep_runs = !options.perfetto.empty() || !options.prometheus.empty(),
                      .page = page,
                      .if_empty = options.what.size() > 1 ? IfEmpty::kExplain : IfEmpty::kFail};
  if (options.what.empty()) ASSAY_TRY_VOID(add_latest(gathering));
  for (const std::string& name : options.what) ASSAY_TRY_VOID(add_named(gathering, name));
  return std::move(gathering.gathered);
}

base::Result<void> write_page(const Session& session, const ReportOptions& options,
                              const std::string& format, Gathered gathered) {
  report::Page page{.title = report::title_of(gathered.parts),
                    .made_unix_ns = base::system_clock().wall_ns(),
                    .parts = std::move(gathered.parts)};
  const bool to_file = format == "html" || !options.output.empty();
  if (!to_file && format == "json") {
    const base::Json document = report::json(page);
    session.print_json(document);
    session.print(base::json_line(document));
    return {};
  }
  const std::string text =
      format == "html" ? report::html(page)
      : format == "md" ? report::markdown(page)
                       : base::json_line(report::json(page));  // compact: it has every point
  if (!to_file) {
    session.print_json(base::Json{{"markdown", text}});
    session.print(text);
    return {};
  }
  const std::string file = options.output.empty() ? "report.html" : options.output;
  ASSAY_TRY_VOID(base::write_output(file, text));
  base::Json parts = base::Json::array();
  std::string lines;
  for (const report::PagePart& part : page.parts) {
    parts.push_back({{"kind", part.kind}, {"title", part.title}, {"verdict", part.verdict.word}});
    lines += fmt::format("  {}: {}{}{}\n", part.kind, base::printable(part.title),
                         part.verdict.word.empty() ? "" : ", ", base::printable(part.verdict.word));
  }
  session.print_json(base::Json{
      {"file", file}, {"format", format}, {"bytes", text.size()}, {"parts", std::move(parts)}});
  session.print(fmt::format("{}: {}\n{}", base::printable(file),
                            base::to_text(base::Bytes(static_cast<std::int64_t>(text.size()))),
                            lines));
  return {};
}

base::Result<base::ExitCode> report_verb_action(const Session& session,
                                                const ReportOptions& options) {
  ASSAY_TRY(const std::string format, format_of(options));
  const bool others = !options.perfetto.empty() || !options.prometheus.empty();
  const bool page = !others || !options.output.empty() || !options.format.empty();
  const std::size_t most_points =
      format == "json" ? std::numeric_limits<std::size_t>::max() : report::kMostEmbedded;
  ASSAY_TRY(Gathered gathered, gather(options, most_points, page));
  if (others && gathered.runs.size() != 1) {
    return base::fail(base::usage_error("report",
                                        "--perfetto and --prometheus need exactly one run, not " +
                                            std::to_string(gathered.runs.size()),
                                        "name one run"));
  }
  const auto write_other = [&](const std::string& file, const std::string& text) {
    return file == "-" ? (session.print(text), base::Result<void>{})
                       : base::write_output(file, text);
  };
  if (!options.perfetto.empty()) {
    ASSAY_TRY_VOID(write_other(options.perfetto, report::perfetto(gathered.runs.front())));
  }
  if (!options.prometheus.empty()) {
    ASSAY_TRY_VOID(write_other(options.prometheus, report::prometheus(gathered.runs.front())));
  }
  if (page) ASSAY_TRY_VOID(write_page(session, options, format, std::move(gathered)));
  return base::ExitCode::kYes;
}

}  // namespace

Verb report_verb(const Session& session) {
  const auto options = std::make_shared<ReportOptions>();
  Argument what{
      "WHAT",
      "runs, folders of assay compare or assay bench, suites, jobs and files of assay plan --json; "
      "default: the last run, or the latest experiment of a project without runs",
      nullptr,
      false,
      [] { return std::vector<std::string>{"last"}; },
      true};
  what.values = &options->what;
  const auto makes_files = [options] {
    const auto is_file = [](const std::string& name) { return !name.empty() && name != "-"; };
    const auto format = format_of(*options);
    const bool others = !options->perfetto.empty() || !options->prometheus.empty();
    return is_file(options->output) || is_file(options->perfetto) || is_file(options->prometheus) ||
           (!others && format && *format == "html");
  };
  return recorded(
      session,
      {.name = "report",
       .description = "report on runs, comparisons, suites or plans, in one file",
       .examples = {"assay report", "assay report last --format md",
                    "assay report 2 3 -o report.html --price 2.5 --carbon 380",
                    "assay report last --perfetto trace.json",
                    "assay report llama3-13b-h200x32 -o plan.html"},
       .arguments = {std::move(what)},
       .options = {{"-o,--output", "default: report.html", &options->output, {}, "FILE", true},
                   {"--format", "html, md or json; default: the output's extension",
                    &options->format, report_formats, "FORMAT"},
                   {"--price",
                    "price in dollars per hour, for all machines together",
                    &options->price,
                    {},
                    "$/H"},
                   {"--carbon",
                    "carbon intensity of the grid, in grams of CO2 per kWh",
                    &options->carbon,
                    {},
                    "G"},
                   {"--perfetto",
                    "write a trace for ui.perfetto.dev; - for standard output",
                    &options->perfetto,
                    {},
                    "FILE",
                    true},
                   {"--prometheus",
                    "write the latest values as Prometheus text; - for standard output",
                    &options->prometheus,
                    {},
                    "FILE",
                    true}},
       .action = [&session, options] { return report_verb_action(session, *options); }},
      makes_files, AboutRuns::kYes);
}

}  // namespace assay::cli
