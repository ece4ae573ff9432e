// Page: what a report says, before it is HTML, Markdown or JSON. Whoever has something to report
// makes a Part of Sections of Blocks (run_part.h, experiment_part.h, suite_part.h); writers.h turns
// the whole into text. So the three forms say the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/json.h"

namespace assay::report {

// Never told by colour alone: a word stands beside it.
enum class Outcome { kPlain, kGood, kBad, kOpen };

struct Verdict {
  Outcome outcome = Outcome::kPlain;
  std::string word;  // "PASS", "done"
  std::string text = {};
};

// A paragraph.
struct Note {
  std::string text;
};

// A figure that a reader looks for first.
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
       Outcome its_outcome = Outcome::kPlain)
      : text(std::move(its_text)), number(its_number), outcome(its_outcome) {}

  std::string text;
  std::optional<double> number;  // what a table is sorted by; such cells stand to the right
  Outcome outcome;
};

// The first cell of a row names it.
struct Table {
  std::string caption;
  std::vector<std::string> columns;
  std::vector<std::vector<Cell>> rows = {};
  std::int64_t more = 0;  // rows that were left out
};

struct Chart {
  std::string name;  // one word, for whoever looks for it: "loss"
  std::string title;
  std::string svg;  // of src/plot
  std::string note = {};
};

using Block = std::variant<Note, Facts, Table, Chart>;

struct Section {
  std::string title;
  std::vector<Block> blocks = {};
};

struct Part {
  std::string kind;  // "run", "experiment", "suite"
  std::string title;
  std::string subtitle = {};  // a command, a folder
  Verdict verdict = {};
  std::vector<Section> sections = {};
  base::Json data = {};  // what all of it was made from
};

struct Page {
  std::string title;
  std::int64_t made_unix_ns = 0;
  std::vector<Part> parts = {};
};

// A section with nothing in it is not added.
void add_section(Part& part, Section section);

}  // namespace assay::report
