// Page: the content of a report, independent of its format: HTML (html.h), Markdown (markdown.h) or
// JSON (below), so that all three agree. run_part.h, experiment_part.h, suite_part.h and
// plan_part.h make its parts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.h"
#include "plot/canvas.h"

namespace assay::report {

// How something ended. Colour is never used alone: there is always a word.
enum class Rating { kPlain, kGood, kBad, kOpen };

struct Verdict {
  Rating rating = Rating::kPlain;
  std::string word;  // "PASS", "done"
  std::string text = {};
};

// A paragraph.
struct Note {
  std::string text;
};

// A figure that readers look for first.
struct Fact {
  std::string name;
  std::string value;
  std::string note = {};
};
struct Facts {
  std::vector<Fact> facts;
};

struct Cell {
  Cell(std::string its_text = {}, std::optional<double> its_number = std::nullopt,
       Rating its_rating = Rating::kPlain)
      : text(std::move(its_text)), number(its_number), rating(its_rating) {}

  std::string text;
  std::optional<double> number;  // sort key of the table; such cells are right-aligned
  Rating rating;
  std::string link = {};  // on an HTML page: the id of what the cell names
};

// The first cell of a row names it.
struct PageTable {
  std::string caption;
  std::vector<std::string> columns;
  std::vector<std::vector<Cell>> rows = {};
  std::int64_t more = 0;  // rows that were left out
};

struct Chart {
  std::string name;  // one word, unique on the page: "loss"
  std::string title;
  plot::Drawing wide;
  plot::Drawing narrow;  // the same for a phone
  std::string note = {};
};

using Block = std::variant<Note, Facts, PageTable, Chart>;

struct Section {
  std::string title;
  std::vector<Block> blocks = {};
};

struct PagePart {
  std::string kind;   // "run", "experiment", "scan", "suite", "plan"
  std::string title;  // what was run: a command, the commands that were compared, a suite
  std::string subtitle = {};
  Verdict verdict = {};
  std::vector<Section> sections = {};
  base::Json data = {};      // the data that it was made from
  bool of_previous = false;  // a detail of the part before it, such as a value of a scan
};

struct Page {
  std::string title;
  std::int64_t made_unix_ns = 0;
  std::vector<PagePart> parts = {};
};

// A chart of src/plot, drawn for both widths.
template <class Plot>
Chart drawn_chart(std::string name, std::string title, const Plot& chart, std::string note = {}) {
  return {std::move(name), std::move(title), draw(chart), draw(chart, plot::kNarrowWidth),
          std::move(note)};
}

// Adds the section unless it is empty.
void add_section(PagePart& part, Section section);

// The id of the i-th part on an HTML page.
std::string part_id(std::size_t index);

// "2 experiments and 1 run", without details of other parts, or the title of the only part.
std::string title_of(const std::vector<PagePart>& parts);

// The outcome of every part, for the top of a page with several; nothing for a page with one.
std::optional<PageTable> overview_of(const Page& page);

// Sections and data.
base::Json json(const Page& page);

}  // namespace assay::report
