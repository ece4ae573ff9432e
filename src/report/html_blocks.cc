#include "report/html_blocks.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"

namespace assay::report {
namespace {

struct Sign {
  const char* css;
  const char* sign;
};

Sign sign_of(Rating rating) {
  switch (rating) {
    case Rating::kGood:
      return {"good", "✓"};
    case Rating::kBad:
      return {"bad", "✗"};
    case Rating::kOpen:
      return {"open", "?"};
    case Rating::kPlain:
      break;
  }
  return {"plain", "·"};
}

void write(Html& out, const Note& note, std::string_view) {
  out.element("p", {}, note.text);
}

void write(Html& out, const Facts& facts, std::string_view) {
  out.open("dl", {{"class", "facts"}});
  for (const Fact& fact : facts.facts) {
    out.open("div", {});
    out.element("dt", {}, fact.name);
    out.element("dd", {}, fact.value);
    if (!fact.note.empty()) out.element("dd", {{"class", "note"}}, fact.note);
    out.close();
  }
  out.close();
}

void write_cell(Html& out, const Cell& cell, bool names_row, std::string css) {
  if (!cell.link.empty()) {
    out.open("th", {{"scope", "row"}, {"class", "linked"}});
    out.element("a", {{"href", "#" + cell.link}}, cell.text);
    out.close();
    return;
  }
  std::string text = cell.text;
  if (cell.rating != Rating::kPlain) {
    const Sign sign = sign_of(cell.rating);
    css += fmt::format("{}verdict {}", css.empty() ? "" : " ", sign.css);
    text = fmt::format("{} {}", sign.sign, text);
  }
  const std::string number = cell.number ? fmt::format("{}", *cell.number) : "";
  if (names_row && cell.number) {
    out.element("th", {{"scope", "row"}, {"class", css}, {"data-n", number}}, text);
  } else if (names_row) {
    out.element("th", {{"scope", "row"}, {"class", css}}, text);
  } else if (cell.number) {
    out.element("td", {{"class", css}, {"data-n", number}}, text);
  } else {
    out.element("td", {{"class", css}}, text);
  }
}

// The class of a column: numbers (n), sentences (t), or cells so short that none needs a second
// line (s).
std::string class_of(const Table& table, std::size_t column) {
  constexpr std::size_t kBlank = 3;  // bytes: a dash
  constexpr std::size_t kShort = 18;
  constexpr std::size_t kName = 28;      // of a row
  constexpr std::size_t kSentence = 40;  // more would not stay on a line
  std::size_t numbers = 0;
  std::size_t words = 0;
  std::size_t longest = 0;
  for (const auto& row : table.rows) {
    if (column >= row.size()) continue;
    const bool number = row[column].number.has_value();
    if (number) ++numbers;
    if (!number && row[column].text.size() > kBlank) ++words;
    if (!number) longest = std::max(longest, row[column].text.size());
  }
  if (longest > kSentence) return "t";
  if (numbers > 0 && numbers >= words) return "n";
  return longest <= (column == 0 ? kName : kShort) ? "s" : "";
}

void write(Html& out, const Table& table, std::string_view heading) {
  out.open(
      "div",
      {{"class", "scroll"}, {"role", "region"}, {"aria-label", table.caption}, {"tabindex", "0"}});
  out.open("table", {});
  out.element("caption", {{"class", table.caption == heading ? "same" : ""}}, table.caption);
  out.open("thead", {});
  out.open("tr", {});
  std::vector<std::string> classes;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    classes.push_back(class_of(table, i));
    out.element("th", {{"scope", "col"}, {"class", classes[i]}}, table.columns[i]);
  }
  out.close();
  out.close();
  out.open("tbody", {});
  for (const auto& row : table.rows) {
    out.open("tr", {});
    for (std::size_t i = 0; i < row.size(); ++i)
      write_cell(out, row[i], i == 0, i < classes.size() ? classes[i] : "");
    out.close();
  }
  out.close();
  out.close();
  out.close();
  if (table.more > 0) {
    out.element("p", {{"class", "more"}},
                fmt::format("and {} more, in the raw data", base::grouped(table.more)));
  }
}

// The style sheet shows one of the two drawings, by the width of the screen.
void write_drawing(Html& out, const Chart& chart, const plot::Drawing& drawing, const char* css) {
  out.open("div",
           {{"class", css}, {"role", "group"}, {"aria-label", chart.title}, {"tabindex", "0"}});
  drawing.write_to(out);
  out.close();
}

void write(Html& out, const Chart& chart, std::string_view) {
  out.open("figure", {{"class", "chart"}, {"data-chart", chart.name}});
  write_drawing(out, chart, chart.wide, "drawing wide");
  write_drawing(out, chart, chart.narrow, "drawing narrow");
  if (!chart.note.empty()) out.element("figcaption", {}, chart.note);
  out.close();
}

}  // namespace

void write_block(Html& out, const Block& block, std::string_view heading) {
  std::visit([&](const auto& one) { write(out, one, heading); }, block);
}

void write_verdict(Html& out, const Verdict& verdict) {
  if (verdict.word.empty()) return;
  const Sign sign = sign_of(verdict.rating);
  out.open("p", {{"class", fmt::format("verdict {}", sign.css)}});
  out.element("strong", {}, fmt::format("{} {}", sign.sign, verdict.word));
  out.element("span", {}, verdict.text);
  out.close();
}

}  // namespace assay::report
