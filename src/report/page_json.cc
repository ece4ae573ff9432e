// A Page as JSON: the counterpart of html.cc for programs.
#include "base/clock.h"
#include "base/version.h"
#include "plot/frame.h"
#include "report/writers.h"

namespace assay::report {
namespace {

using base::Json;

Json block_json(const Note& note) {
  return {{"note", note.text}};
}

Json block_json(const Facts& facts) {
  Json list = Json::array();
  for (const Fact& fact : facts.facts) {
    list.push_back({{"name", fact.name}, {"value", fact.value}, {"note", fact.note}});
  }
  return {{"facts", std::move(list)}};
}

Json block_json(const Table& table) {
  Json rows = Json::array();
  for (const auto& row : table.rows) {
    Json cells = Json::array();
    for (const Cell& cell : row)
      cells.push_back(cell.number ? Json(*cell.number) : Json(cell.text));
    rows.push_back(std::move(cells));
  }
  return {{"table", table.caption},
          {"columns", table.columns},
          {"rows", std::move(rows)},
          {"more", table.more}};
}

Json block_json(const Chart& chart) {
  return {{"chart", chart.name},
          {"title", chart.title},
          {"words", plot::words_of(chart.svg)},
          {"note", chart.note}};
}

}  // namespace

Json json(const Page& page) {
  Json parts = Json::array();
  for (const Part& part : page.parts) {
    Json sections = Json::array();
    for (const Section& section : part.sections) {
      Json blocks = Json::array();
      for (const Block& block : section.blocks) {
        blocks.push_back(std::visit([](const auto& one) { return block_json(one); }, block));
      }
      sections.push_back({{"title", section.title}, {"blocks", std::move(blocks)}});
    }
    parts.push_back({{"kind", part.kind},
                     {"title", part.title},
                     {"subtitle", part.subtitle},
                     {"verdict", part.verdict.word},
                     {"verdict_text", part.verdict.text},
                     {"sections", std::move(sections)},
                     {"data", part.data}});
  }
  return {{"title", page.title},
          {"made_at", base::utc_text(page.made_unix_ns)},
          {"program", base::version().release},
          {"commit", base::version().commit},
          {"parts", std::move(parts)}};
}

}  // namespace assay::report
