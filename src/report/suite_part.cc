#include "report/suite_part.h"

#include <fmt/format.h>

#include "base/units.h"
#include "report/machine_tables.h"
#include "report/suite_goals.h"
#include "report/suite_tables.h"

namespace assay::report {
namespace {

using base::Json;

std::string with_source(std::string published, const std::string& url) {
  if (url.empty()) return published;
  return published.empty() ? url : published + ", " + url;
}

Section about_section(const Json& suite) {
  Section section{"The published experiment"};
  const std::string source = with_source(suite_text(suite, "reproduces"), suite_text(suite, "url"));
  if (!source.empty()) section.blocks.emplace_back(Note{"Published: " + source});
  if (const std::string note = suite_text(suite, "note"); !note.empty()) {
    section.blocks.emplace_back(Note{note});
  }
  if (suite.contains("quick") && suite.at("quick") == true) {
    section.blocks.emplace_back(Note{
        "A quick run: it only shows that the suite works, and measures too little to judge by."});
  }
  return section;
}

Section cases_section(const Json& suite) {
  Table table{"Cases", {"case", "kind", "state", "took", "why"}};
  for (const Json& each : suite_cases(suite)) {
    double took = 0;
    if (each.contains("wall_s") && each.at("wall_s").is_array()) {
      for (const Json& seconds : each.at("wall_s")) {
        took += seconds.is_number() ? seconds.get<double>() : 0;
      }
    }
    const std::string state = suite_text(each, "state");
    table.rows.push_back(
        {Cell(suite_text(each, "case")), Cell(suite_text(each, "kind")),
         Cell(state, std::nullopt, state == "failed" ? Rating::kBad : Rating::kPlain),
         took > 0 ? Cell(base::to_text(base::Seconds(took)), took) : Cell("—"),
         Cell(suite_text(each, "why"))});
  }
  if (table.rows.empty()) return {};
  leave_out_blank(table);
  return {"Cases", {std::move(table)}};
}

Section fingerprint_of_suite(const Json& suite) {
  Table table{"Where it ran", {"what", "value"}};
  const auto add = [&](const char* name, std::string value) {
    if (!value.empty()) table.rows.push_back({Cell(name), Cell(std::move(value))});
  };
  add("begun", suite_text(suite, "begun"));
  add("assay's commit", suite_text(suite, "commit"));
  add("quick", suite_text(suite, "quick"));
  add("complete", suite_text(suite, "complete"));
  add("folder", suite_text(suite, "directory"));
  const Json machine = suite.contains("machine") ? suite.at("machine") : Json();
  if (machine.is_object()) {
    add("host", suite_text(machine, "hostname"));
    add_machine_rows(table, machine);
  }
  Section section{"Fingerprint"};
  if (table.rows.empty()) return section;
  section.blocks.emplace_back(std::move(table));
  for (Table& gpus : gpu_tables(machine)) section.blocks.emplace_back(std::move(gpus));
  return section;
}

}  // namespace

base::Result<PagePart> suite_part(const Json& suite, const std::string& where) {
  if (!suite.is_object() || !suite.contains("suite") || !suite.at("suite").is_string()) {
    return base::fail(bad_suite(where, "is not a suite result: it has no 'suite'"));
  }
  const std::string title = suite_text(suite, "title");
  PagePart part{.kind = "suite",
                .title = suite.at("suite").get<std::string>() + (title.empty() ? "" : ": " + title),
                .subtitle = where};
  for (const char* key : {"goals", "tables"}) {
    if (suite.contains(key) && !suite.at(key).is_array()) {
      return base::fail(bad_suite(where, fmt::format("'{}' is not a list", key)));
    }
  }
  add_section(part, about_section(suite));
  if (suite.contains("goals") && !suite.at("goals").empty()) {
    ASSAY_TRY(Table goals, suite_goals(suite.at("goals"), where));
    add_section(part, {"Goals", {std::move(goals)}});
  }
  part.verdict = suite_verdict(suite);
  std::size_t charts = 0;
  if (suite.contains("tables")) {
    for (const Json& table : suite.at("tables")) {
      ASSAY_TRY(Section section, suite_table(table, where));
      for (Block& block : section.blocks) {
        if (auto* chart = std::get_if<Chart>(&block))
          chart->name = fmt::format("suite-{}", ++charts);
      }
      add_section(part, std::move(section));
    }
  }
  add_section(part, cases_section(suite));
  add_section(part, fingerprint_of_suite(suite));
  part.data = suite;
  return part;
}

}  // namespace assay::report
