#include "report/markdown.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"
#include "base/version.h"

namespace assay::report {
namespace {

// One line in which every character that Markdown interprets is escaped.
std::string plain(std::string_view text) {
  constexpr std::string_view kSpecial = "\\`*_{}[]<>()#+!|~&$";
  std::string safe;
  for (const char c : base::printable(text)) {
    if (kSpecial.find(c) != std::string_view::npos) safe += '\\';
    safe += c;
  }
  return safe;
}

void write_markdown(std::string& out, const Note& note, std::string_view) {
  out += plain(note.text) + "\n\n";
}

void table_line(std::string& out, const std::vector<std::string>& cells) {
  out += '|';
  for (const std::string& cell : cells) out += fmt::format(" {} |", cell);
  out += '\n';
}

void write_markdown(std::string& out, const Facts& facts, std::string_view) {
  table_line(out, {"", "", ""});
  table_line(out, {"---", "---:", "---"});
  for (const Fact& fact : facts.facts) {
    table_line(out, {plain(fact.name), plain(fact.value), plain(fact.note)});
  }
  out += '\n';
}

void write_markdown(std::string& out, const Table& table, std::string_view heading) {
  if (table.caption != heading) out += fmt::format("**{}**\n\n", plain(table.caption));
  std::vector<std::string> titles;
  std::vector<std::string> rules;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    titles.push_back(plain(table.columns[i]));
    const bool numeric = !table.rows.empty() && i < table.rows.front().size() &&
                         table.rows.front()[i].number.has_value();
    rules.emplace_back(numeric ? "---:" : "---");
  }
  table_line(out, titles);
  table_line(out, rules);
  for (const auto& row : table.rows) {
    std::vector<std::string> cells;
    for (const Cell& cell : row) cells.push_back(plain(cell.text));
    table_line(out, cells);
  }
  if (table.more > 0) out += fmt::format("\nand {} more\n", base::grouped(table.more));
  out += '\n';
}

void write_markdown(std::string& out, const Chart& chart, std::string_view) {
  constexpr std::size_t kMostColumns = 400;  // of a description
  out += fmt::format("*Chart: {}.* {}{}{}\n\n", plain(chart.title),
                     plain(base::shortened(chart.wide.description(), kMostColumns)),
                     chart.note.empty() ? "" : " ", plain(chart.note));
}

}  // namespace

std::string markdown(const Page& page) {
  std::string out = fmt::format("# {}\n\nmade {} by assay {} \\(commit {}\\)\n\n",
                                plain(page.title), base::utc_text(page.made_unix_ns),
                                base::version().release, plain(base::version().commit));
  if (const auto overview = overview_of(page)) write_markdown(out, *overview, "");
  for (const PagePart& part : page.parts) {
    out += fmt::format("## {}: {}\n\n", plain(part.kind), plain(part.title));
    if (!part.subtitle.empty()) out += plain(part.subtitle) + "\n\n";
    if (!part.verdict.word.empty()) {
      out += fmt::format("**{}** {}\n\n", plain(part.verdict.word), plain(part.verdict.text));
    }
    for (const Section& section : part.sections) {
      out += fmt::format("### {}\n\n", plain(section.title));
      for (const Block& block : section.blocks) {
        std::visit([&](const auto& one) { write_markdown(out, one, section.title); }, block);
      }
    }
  }
  out.pop_back();
  return out;
}

}  // namespace assay::report
