// assay report [RUN|EXPERIMENT|SUITE…]: a page of what was run, compared or measured.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>

#include "assay/project.h"
#include "assay/report/sources.h"
#include "assay/verbs.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/suggestion.h"
#include "base/text.h"
#include "base/units.h"
#include "report/perfetto.h"
#include "report/prometheus.h"
#include "report/run_part.h"
#include "report/writers.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> report_formats() {
  return {"html", "md", "json"};
}

// As it is said, or as the output's name says.
base::Result<std::string> format_of(const ReportWords& words) {
  const std::vector<std::string> known = report_formats();
  if (words.format.empty()) {
    const std::string extension = fs::path(words.output).extension().string();
    for (const std::string& format : known) {
      if (extension == "." + format) return format;
    }
    if (extension.empty() || extension == ".htm") return "html";
    return base::fail(base::usage_error(
        words.output, fmt::format("a page is not written as '{}'", extension.substr(1)),
        "call it .html, .md or .json, or say --format"));
  }
  if (std::find(known.begin(), known.end(), words.format) != known.end()) return words.format;
  return base::fail(base::usage_error("report", fmt::format("unknown format '{}'", words.format),
                                      base::suggestion(words.format, known)));
}

// Opened when the first run is asked for: experiments and suites need no project.
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
  std::vector<report::Part> parts;
  std::vector<report::ReportedRun> runs;  // only where a trace or live values are asked for
};

base::Result<void> add_run(LazyStore& lazy, const std::string& word, const report::Rates& rates,
                           std::size_t most_points, bool keep, bool page, Gathered& gathered) {
  ASSAY_TRY(store::Store* const store, lazy.get());
  ASSAY_TRY(report::ReportedRun run, run_record(*store, word, rates));
  if (page) gathered.parts.push_back(report::run_part(run, most_points));
  if (keep) gathered.runs.push_back(std::move(run));
  return {};
}

base::Result<Gathered> gather(const ReportWords& words, std::size_t most_points, bool page) {
  ASSAY_TRY(const report::Rates rates, rates_of(words));
  const bool keep = !words.perfetto.empty() || !words.prometheus.empty();
  LazyStore store;
  Gathered gathered;
  const std::vector<std::string> what =
      words.what.empty() ? std::vector<std::string>{"last"} : words.what;
  for (const std::string& word : what) {
    const fs::path path(word);
    if (is_experiment(path)) {
      ASSAY_TRY(report::Part part, experiment_in(path));
      gathered.parts.push_back(std::move(part));
    } else if (is_suite(path)) {
      ASSAY_TRY(report::Part part, suite_in(path));
      gathered.parts.push_back(std::move(part));
    } else if (auto added = add_run(store, word, rates, most_points, keep, page, gathered);
               !added) {
      // Runs come first: somebody may have called one like a suite.
      const auto suite = latest_result(word);
      if (!suite) return base::fail(nothing_called(word, std::move(added).error()));
      ASSAY_TRY(report::Part part, suite_in(*suite));
      gathered.parts.push_back(std::move(part));
    }
  }
  return gathered;
}

// What is there and is no file (a pipe, a terminal) is written to; a file is replaced once the new
// one is complete.
base::Result<void> write_output(const std::string& file, std::string_view text) {
  std::error_code error;
  const fs::file_status status = fs::status(file, error);
  const bool special = fs::exists(status) && !fs::is_regular_file(status);
  const std::string draft = special ? file : fmt::format("{}.{}", file, ::getpid());
  auto written = base::write_file(draft, text);
  if (written && !special) {
    fs::rename(draft, file, error);
    if (error) written = base::fail(base::system_error(file, "cannot be written", error.value()));
  }
  if (written) return {};
  if (!special) fs::remove(draft, error);
  written.error().where = file;
  return written;
}

base::Result<void> write_page(const Session& session, const ReportWords& words,
                              const std::string& format, Gathered gathered) {
  report::Page page{.title = gathered.parts.size() == 1
                                 ? gathered.parts.front().title
                                 : fmt::format("{} and {} more", gathered.parts.front().title,
                                               gathered.parts.size() - 1),
                    .made_unix_ns = base::system_clock().wall_ns(),
                    .parts = std::move(gathered.parts)};
  const bool to_file = format == "html" || !words.output.empty();
  if (!to_file && format == "json") {
    const base::Json document = report::json(page);
    session.print_json(document);
    session.print(base::json_line(document));
    return {};
  }
  const std::string text =
      format == "html" ? report::html(page)
      : format == "md" ? report::markdown(page)
                       : base::json_line(report::json(page));  // with every point: no line for each
  if (!to_file) {
    session.print_json(base::Json{{"markdown", text}});
    session.print(text);
    return {};
  }
  const std::string file = words.output.empty() ? "report.html" : words.output;
  ASSAY_TRY_VOID(write_output(file, text));
  base::Json parts = base::Json::array();
  std::string lines;
  for (const report::Part& part : page.parts) {
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

base::Result<base::ExitCode> report_verb_action(const Session& session, const ReportWords& words) {
  ASSAY_TRY(const std::string format, format_of(words));
  const bool others = !words.perfetto.empty() || !words.prometheus.empty();
  const bool page = !others || !words.output.empty() || !words.format.empty();
  const std::size_t most_points =
      format == "json" ? std::numeric_limits<std::size_t>::max() : report::kMostEmbedded;
  ASSAY_TRY(Gathered gathered, gather(words, most_points, page));
  if (others && gathered.runs.size() != 1) {
    return base::fail(base::usage_error("report",
                                        "--perfetto and --prometheus are about one run, and here "
                                        "are " +
                                            std::to_string(gathered.runs.size()),
                                        "name one run"));
  }
  const auto write_other = [&](const std::string& file, const std::string& text) {
    return file == "-" ? (session.print(text), base::Result<void>{}) : write_output(file, text);
  };
  if (!words.perfetto.empty()) {
    ASSAY_TRY_VOID(write_other(words.perfetto, report::perfetto(gathered.runs.front())));
  }
  if (!words.prometheus.empty()) {
    ASSAY_TRY_VOID(write_other(words.prometheus, report::prometheus(gathered.runs.front())));
  }
  if (page) ASSAY_TRY_VOID(write_page(session, words, format, std::move(gathered)));
  return base::ExitCode::kYes;
}

}  // namespace

Verb report_verb(const Session& session) {
  const auto words = std::make_shared<ReportWords>();
  Argument what{"WHAT",
                "runs, folders of assay compare or assay bench, suites; default: the last run",
                nullptr,
                false,
                [] { return std::vector<std::string>{"last"}; },
                true};
  what.values = &words->what;
  return {.name = "report",
          .description = "a page of what was run, compared or measured, in one file",
          .examples = {"assay report", "assay report last --format md",
                       "assay report 2 3 -o report.html --price 2.5 --carbon 380",
                       "assay report last --perfetto trace.json"},
          .arguments = {std::move(what)},
          .options = {{"-o,--output", "default: report.html", &words->output, {}, "FILE", true},
                      {"--format", "html, md or json; default: as the output is called",
                       &words->format, report_formats, "FORMAT"},
                      {"--price", "dollars per hour for all machines", &words->price, {}, "$/H"},
                      {"--carbon", "the grid's grams of CO2 per kWh", &words->carbon, {}, "G"},
                      {"--perfetto",
                       "a trace for ui.perfetto.dev; - for standard output",
                       &words->perfetto,
                       {},
                       "FILE",
                       true},
                      {"--prometheus",
                       "the latest values as Prometheus text; - for standard output",
                       &words->prometheus,
                       {},
                       "FILE",
                       true}},
          .action = [&session, words] { return report_verb_action(session, *words); }};
}

}  // namespace assay::cli
