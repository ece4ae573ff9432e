#include "report/markdown.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "base/markdown.h"
#include "base/text.h"
#include "base/units.h"
#include "base/version.h"

namespace assay::report {
namespace {

using base::add_markdown_row;
using base::markdown_text;

void write_markdown(std::string& out, const Note& note, std::string_view) {
  out += markdown_text(note.text) + "\n\n";
}

void write_markdown(std::string& out, const Facts& facts, std::string_view) {
  add_markdown_row(out, {"", "", ""});
  add_markdown_row(out, {"---", "---:", "---"});
  for (const Fact& fact : facts.facts) {
    add_markdown_row(
        out, {markdown_text(fact.name), markdown_text(fact.value), markdown_text(fact.note)});
  }
  out += '\n';
}

void write_markdown(std::string& out, const PageTable& table, std::string_view heading) {
  if (table.caption != heading) out += fmt::format("**{}**\n\n", markdown_text(table.caption));
  std::vector<std::string> titles;
  std::vector<std::string> rules;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    titles.push_back(markdown_text(table.columns[i]));
    const bool numeric = !table.rows.empty() && i < table.rows.front().size() &&
                         table.rows.front()[i].number.has_value();
    rules.emplace_back(numeric ? "---:" : "---");
  }
  add_markdown_row(out, titles);
  add_markdown_row(out, rules);
  for (const auto& row : table.rows) {
    std::vector<std::string> cells;
    for (const Cell& cell : row) cells.push_back(markdown_text(cell.text));
    add_markdown_row(out, cells);
  }
  if (table.more > 0) out += fmt::format("\nand {} more\n", base::grouped(table.more));
  out += '\n';
}

void write_markdown(std::string& out, const Chart& chart, std::string_view) {
  constexpr std::size_t kMostColumns = 400;  // of a description
  out += fmt::format("*Chart: {}.* {}{}{}\n\n", markdown_text(chart.title),
                     markdown_text(base::shortened(chart.wide.description(), kMostColumns)),
                     chart.note.empty() ? "" : " ", markdown_text(chart.note));
}

}  // namespace

std::string markdown(const Page& page) {
  std::string out = fmt::format("# {}\n\nmade {} by assay {} \\(commit {}\\)\n\n",
                                markdown_text(page.title), base::utc_text(page.made_unix_ns),
                                base::version().release, markdown_text(base::version().commit));
  if (const auto overview = overview_of(page)) write_markdown(out, *overview, "");
  for (const PagePart& part : page.parts) {
    out += fmt::format("## {}: {}\n\n", markdown_text(part.kind), markdown_text(part.title));
    if (!part.subtitle.empty()) out += markdown_text(part.subtitle) + "\n\n";
    if (!part.verdict.word.empty()) {
      out += fmt::format("**{}** {}\n\n", markdown_text(part.verdict.word),
                         markdown_text(part.verdict.text));
    }
    for (const Section& section : part.sections) {
      out += fmt::format("### {}\n\n", markdown_text(section.title));
      for (const Block& block : section.blocks) {
        std::visit([&](const auto& one) { write_markdown(out, one, section.title); }, block);
      }
    }
  }
  out.pop_back();
  return out;
}

}  // namespace assay::report
