// assay diff RUN RUN: the differences between two runs.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "assay/project.h"
#include "assay/shared/reported_values.h"
#include "assay/verbs.h"
#include "base/text.h"
#include "lineage/graph/dag_view.h"
#include "lineage/graph/resolve.h"
#include "lineage/graph/run_diff.h"
#include "store/run_reader.h"

namespace assay::cli {
namespace {

constexpr std::size_t kRows = 200;
constexpr std::size_t kValueColumns = 48;

// Lines of at most kValueColumns, broken between words where there are any: the end of a command is
// often where two differ.
std::vector<std::string> wrapped(const std::string& value) {
  if (value.empty()) return {"—"};
  std::vector<std::string> lines;
  std::string rest = base::printable(value);
  while (rest.size() > kValueColumns) {
    std::size_t end = rest.rfind(' ', kValueColumns);
    const bool between = end != std::string::npos && end > 0;
    if (!between) {
      end = kValueColumns;
      // Not inside a character.
      while (end > 1 && (static_cast<unsigned char>(rest[end]) & 0xC0U) == 0x80U) --end;
    }
    lines.push_back(rest.substr(0, end));
    rest.erase(0, between ? end + 1 : end);
  }
  lines.push_back(std::move(rest));
  return lines;
}

struct DiffOptions {
  std::string before, after;
};

base::Result<base::ExitCode> diff(const Session& session, const DiffOptions& options) {
  ASSAY_TRY(store::Store store, open_store());
  ASSAY_TRY(const std::filesystem::path directory, working_directory());
  ASSAY_TRY(const store::RunId before_id, lineage::resolve_run(store, options.before));
  ASSAY_TRY(const store::RunId after_id, lineage::resolve_run(store, options.after));
  ASSAY_TRY(const store::RunRecord before, store::load_run(store, before_id));
  ASSAY_TRY(const store::RunRecord after, store::load_run(store, after_id));
  ASSAY_TRY(const lineage::ReportedValues reported, reported_values(store, before_id));
  ASSAY_TRY(const lineage::ReportedValues reported_after, reported_values(store, after_id));
  std::vector<lineage::RunDifference> found = lineage::reported_diff(reported, reported_after);
  for (lineage::RunDifference& one : lineage::run_diff(before, after)) {
    found.push_back(std::move(one));
  }
  base::Json list = base::Json::array();
  base::Table table({"", "", fmt::format("run {}", before_id), fmt::format("run {}", after_id)});
  table.align(2, base::Align::kLeft).align(3, base::Align::kLeft);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const lineage::RunDifference& one = found[i];
    if (session.json) {
      list.push_back({{"section", one.section},
                      {"what", one.what},
                      {"before", base::or_null(one.before)},
                      {"after", base::or_null(one.after)}});
    }
    if (i >= kRows) continue;
    const bool file = one.section == "input" || one.section == "output";
    const std::vector<std::string> left = wrapped(one.before);
    const std::vector<std::string> right = wrapped(one.after);
    for (std::size_t line = 0; line < std::max(left.size(), right.size()); ++line) {
      const std::string what = file ? lineage::shown_path(one.what, directory) : one.what;
      table.row({line == 0 ? one.section : "", line == 0 ? base::printable(what) : "",
                 line < left.size() ? left[line] : "", line < right.size() ? right[line] : ""});
    }
  }
  session.print_json(base::Json{{"before", before_id},
                                {"after", after_id},
                                {"same", found.empty()},
                                {"differences", std::move(list)}});
  if (found.empty()) {
    session.print(fmt::format("runs {} and {} are the same\n", before_id, after_id));
    return base::ExitCode::kYes;
  }
  session.print(table);
  if (found.size() > kRows) {
    session.print(fmt::format("and {} more; --json has them all\n", found.size() - kRows));
  }
  session.next(fmt::format("assay show {}", after_id));
  return base::ExitCode::kNo;
}

}  // namespace

Verb diff_verb(const Session& session) {
  const auto given = std::make_shared<DiffOptions>();
  return {.name = "diff",
          .description = "show the differences between two runs; exits 1 if there are any",
          .examples = {"assay diff 1 2", "assay diff 1 2 --json"},
          .arguments = {{"BEFORE", "a run", &given->before, true},
                        {"AFTER", "another run", &given->after, true}},
          .action = [&session, given] { return diff(session, *given); }};
}

}  // namespace assay::cli
