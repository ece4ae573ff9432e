#include "report/page.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/version.h"

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

Json block_json(const PageTable& table) {
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
          {"description", chart.wide.description()},
          {"note", chart.note}};
}

}  // namespace

void add_section(PagePart& part, Section section) {
  if (!section.blocks.empty()) part.sections.push_back(std::move(section));
}

std::string part_id(std::size_t index) {
  return fmt::format("part-{}", index + 1);
}

std::string title_of(const std::vector<PagePart>& parts) {
  const auto whole = std::count_if(parts.begin(), parts.end(),
                                   [](const PagePart& part) { return !part.of_previous; });
  if (whole == 1) return parts.front().title;
  std::vector<std::pair<std::string, std::size_t>> kinds;  // in the order in which they occur
  for (const PagePart& part : parts) {
    if (part.of_previous) continue;
    const auto known = std::find_if(kinds.begin(), kinds.end(),
                                    [&](const auto& kind) { return kind.first == part.kind; });
    if (known == kinds.end()) {
      kinds.emplace_back(part.kind, 1);
    } else {
      ++known->second;
    }
  }
  std::string title;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    title += fmt::format("{}{} {}{}",
                         i == 0                  ? ""
                         : i + 1 == kinds.size() ? " and "
                                                 : ", ",
                         kinds[i].second, kinds[i].first, kinds[i].second == 1 ? "" : "s");
  }
  return title;
}

std::optional<PageTable> overview_of(const Page& page) {
  if (page.parts.size() < 2) return std::nullopt;
  PageTable table{"Overview", {"what", "verdict", "result", "kind"}};
  for (std::size_t i = 0; i < page.parts.size(); ++i) {
    const PagePart& part = page.parts[i];
    Cell name(part.title);
    name.link = part_id(i);
    table.rows.push_back({std::move(name),
                          Cell(part.verdict.word, std::nullopt, part.verdict.rating),
                          Cell(part.verdict.text), Cell(part.kind)});
  }
  return table;
}

Json json(const Page& page) {
  Json parts = Json::array();
  for (const PagePart& part : page.parts) {
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
