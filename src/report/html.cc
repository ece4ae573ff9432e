// OpenSSL's SHA-256 functions rather than EVP_Digest: statically linked, EVP brings every algorithm
// and provider with it, which cost each start of the program 0.7 ms; these bring 30 KB.
#define OPENSSL_API_COMPAT 0x10100000L
#include "report/html.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/clock.h"
#include "base/embedded_file.h"
#include "base/text.h"
#include "base/units.h"
#include "base/version.h"
#include "plot/style.h"
#include "plot/xml.h"

namespace assay::report {

std::span<const base::EmbeddedFile> embedded_files();

namespace {

using Html = plot::XmlWriter;

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
std::string class_of(const PageTable& table, std::size_t column) {
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

void write(Html& out, const PageTable& table, std::string_view heading) {
  out.open(
      "div",
      {{"class", "scroll"}, {"role", "region"}, {"aria-label", table.caption}, {"tabindex", "0"}});
  // Facts below each other: on a phone their values are wrapped rather than scrolled to.
  out.open("table", {{"class", table.columns.size() == 2 ? "facts-table" : ""}});
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

// `heading` is the title of the section; a caption that repeats it is hidden.
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

std::string_view embedded(std::string_view name) {
  for (const base::EmbeddedFile& file : embedded_files()) {
    if (file.path == name) return file.contents;
  }
  ASSAY_CHECK(false, "the style sheet and the script are compiled in");
  return {};
}

// JSON for inside a <script>: nothing in it can end the element or open another.
std::string for_script(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    if (c == '<') {
      safe += "\\u003c";
    } else if (c == '>') {
      safe += "\\u003e";
    } else if (c == '&') {
      safe += "\\u0026";
    } else {
      safe += c;
    }
  }
  return safe;
}

void write_data(Html& out, const PagePart& part, const std::string& id) {
  const std::string section = id + "-data";
  out.open("section",
           {{"id", section}, {"aria-labelledby", section + "-title"}, {"class", "data"}});
  out.element("h3", {{"id", section + "-title"}}, "Raw data");
  out.open("p", {{"class", "download"}, {"hidden", ""}});
  out.element("a",
              {{"href", "#" + section},
               {"download", fmt::format("{}-{}.json", part.kind, id)},
               {"data-of", section + "-json"}},
              "Download as JSON");
  out.close();
  out.open("details", {});
  out.element("summary", {}, "Show the data of this report, as JSON");
  out.verbatim_element("script", {{"type", "application/json"}, {"id", section + "-json"}},
                       for_script(base::json_line(part.data)));
  out.close();
  out.close();
}

void write_part(Html& out, const PagePart& part, const std::string& id) {
  out.open("article", {{"id", id}, {"aria-labelledby", id + "-title"}});
  out.open("header", {});
  out.element("p", {{"class", "kind"}}, part.kind);
  out.element("h2", {{"id", id + "-title"}}, part.title);
  if (!part.subtitle.empty()) {
    out.open("p", {{"class", "subtitle"}});
    out.element("code", {}, part.subtitle);
    out.close();
  }
  write_verdict(out, part.verdict);
  out.close();
  for (std::size_t i = 0; i < part.sections.size(); ++i) {
    const std::string section = fmt::format("{}-{}", id, i + 1);
    out.open("section", {{"id", section}, {"aria-labelledby", section + "-title"}});
    out.element("h3", {{"id", section + "-title"}}, part.sections[i].title);
    for (const Block& block : part.sections[i].blocks) {
      write_block(out, block, part.sections[i].title);
    }
    out.close();
  }
  write_data(out, part, id);
  out.close();
}

constexpr std::size_t kMostInContents = 40;  // columns of a part's title

void write_contents(Html& out, const Page& page) {
  out.open("nav", {{"aria-label", "Contents"}});
  out.open("ol", {});
  for (std::size_t p = 0; p < page.parts.size(); ++p) {
    const std::string id = part_id(p);
    out.open("li", {});
    const std::string name = base::shortened_middle(page.parts[p].title, kMostInContents);
    out.element("a", {{"href", "#" + id}},
                page.parts.size() == 1 ? name : fmt::format("{}. {}", p + 1, name));
    out.open("ol", {});
    const auto entry = [&](const std::string& to, std::string_view title) {
      out.open("li", {});
      out.element("a", {{"href", "#" + to}}, title);
      out.close();
    };
    for (std::size_t i = 0; i < page.parts[p].sections.size(); ++i) {
      entry(fmt::format("{}-{}", id, i + 1), page.parts[p].sections[i].title);
    }
    entry(id + "-data", "Raw data");
    out.close();
    out.close();
  }
  out.close();
  out.close();
}

void write_head(Html& out, const Page& page, const std::string& style, std::string_view script) {
  out.open("head", {});
  out.element("meta", {{"charset", "utf-8"}});
  out.element("meta",
              {{"http-equiv", "Content-Security-Policy"},
               {"content", fmt::format("default-src 'none'; style-src '{}'; script-src '{}'; "
                                       "img-src data:; base-uri 'none'; form-action 'none'",
                                       policy_hash(style), policy_hash(script))}});
  out.element("meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}});
  out.element("meta", {{"name", "color-scheme"}, {"content", "light dark"}});
  out.element("meta", {{"name", "generator"},
                       {"content", fmt::format("assay {}", base::version().release)}});
  out.element("title", {}, page.title);
  // Otherwise browsers request one from the server.
  out.element("link", {{"rel", "icon"}, {"href", "data:,"}});
  out.verbatim_element("style", {}, style);
  out.close();
}

}  // namespace

std::string policy_hash(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256_CTX state;
  SHA256_Init(&state);
  SHA256_Update(&state, text.data(), text.size());
  SHA256_Final(digest.data(), &state);
  std::array<unsigned char, 2 * SHA256_DIGEST_LENGTH> encoded{};  // base64 is a third longer
  const int length = EVP_EncodeBlock(encoded.data(), digest.data(), SHA256_DIGEST_LENGTH);
  return "sha256-" + std::string(encoded.begin(), encoded.begin() + length);
}

std::string html(const Page& page) {
  const std::string style = std::string(embedded("page.css")) + plot::style_sheet();
  const std::string_view script = embedded("page.js");
  Html out;
  out.open("html", {{"lang", "en"}});
  write_head(out, page, style, script);
  out.open("body", {});
  out.element("a", {{"class", "skip"}, {"href", "#main"}}, "Skip to the content");
  out.open("header", {{"class", "top"}});
  out.element("p", {{"class", "brand"}}, "Assay report");
  out.element("h1", {}, page.title);
  out.element("p", {{"class", "made"}},
              fmt::format("made {} by assay {} (commit {})", base::utc_text(page.made_unix_ns),
                          base::version().release, base::version().commit));
  out.close();
  write_contents(out, page);
  out.open("main", {{"id", "main"}});
  if (const auto overview = overview_of(page)) {
    out.open("section", {{"id", "overview"}, {"aria-labelledby", "overview-title"}});
    out.element("h2", {{"id", "overview-title"}}, overview->caption);
    write_block(out, *overview, overview->caption);
    out.close();
  }
  for (std::size_t p = 0; p < page.parts.size(); ++p) {
    write_part(out, page.parts[p], part_id(p));
  }
  out.close();
  out.open("footer", {});
  out.element(
      "p", {},
      "This file loads nothing from the network. Scripts only add values under the pointer, "
      "switches for series and sorting of tables.");
  out.close();
  out.verbatim_element("script", {}, script);
  out.close();
  out.close();
  return "<!DOCTYPE html>\n" + out.text();
}

}  // namespace assay::report
