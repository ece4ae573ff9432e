#include "lineage/graph/dag_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "base/units.h"
#include "lineage/graph/layout.h"
#include "plot/xml.h"

namespace assay::lineage {
namespace {

constexpr double kCharWidth = 7.3;  // of 12 px monospace, rounded up
constexpr double kSmallWidth = 6.1;
constexpr double kPadding = 11;
constexpr double kHeight = 40;
constexpr double kMargin = 20;
constexpr std::size_t kColumns = 38;

struct Drawn {
  std::string kind;   // CSS class
  std::string title;  // first line, already short
  std::string detail;
  std::string hover;
};

Drawn drawn_run(const store::RunRecord& run) {
  const std::string command = command_text(run);
  std::string kind = "run";
  if (run.superseded) kind += " old";
  if (run.status == store::RunStatus::kFailed || run.status == store::RunStatus::kInterrupted) {
    kind += " bad";
  }
  return {kind, base::shortened(base::printable(command), kColumns),
          fmt::format("{}{} · {}",
                      run.stage != 0 && !run.superseded ? fmt::format("@{} · ", run.stage) : "",
                      fmt::format("run {}", run.id),
                      run.status == store::RunStatus::kDone
                          ? base::to_text(base::Seconds(run.duration_s))
                          : std::string(store::name_of(run.status))),
          fmt::format("{}\nin {}", command, run.directory)};
}

Drawn drawn_bundle(const DagView& view, const Bundle& bundle) {
  std::string hover;
  constexpr std::size_t kListed = 30;
  for (std::size_t i = 0; i < std::min(bundle.files.size(), kListed); ++i) {
    const DagFile& file = view.dag->files[bundle.files[i]];
    hover += fmt::format("{}{}  {}", i == 0 ? "" : "\n", file.path,
                         file.blake3 ? file.blake3->hex() : "");
  }
  if (bundle.files.size() > kListed) hover += "\n…";
  std::string kind = "file";
  if (!bundle.producer) kind += " outside";
  if (view.dag->file && bundle.files == std::vector{*view.dag->file}) kind += " asked";
  return {kind, base::shortened_middle(view.label(bundle, 2), kColumns), view.detail(bundle),
          hover};
}

// A smooth line through the points: level where it passes a layer.
std::string curve(const std::vector<Point>& points) {
  std::string path = fmt::format("M{:.1f} {:.1f}", points[0].x, points[0].y);
  for (std::size_t i = 1; i < points.size(); ++i) {
    const Point& a = points[i - 1];
    const Point& b = points[i];
    const double middle = (a.x + b.x) / 2;
    path += fmt::format("C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", middle, a.y, middle, b.y, b.x,
                        b.y);
  }
  return path;
}

// A marker does not take the colour of its line, so each colour has one.
void write_tip(plot::XmlWriter& svg, std::string_view id, std::string_view kind) {
  svg.open("marker", {{"id", id},
                      {"class", kind},
                      {"viewBox", "0 0 8 8"},
                      {"refX", 7},
                      {"refY", 4},
                      {"markerWidth", 7},
                      {"markerHeight", 7},
                      {"orient", "auto"}});
  svg.element("path", {{"d", "M0 0L8 4L0 8z"}});
  svg.close();
}

void write_box(plot::XmlWriter& svg, const Drawn& one, const Box& box) {
  const double text_x = box.x + kPadding;
  svg.open("g", {{"class", one.kind}});
  svg.multiline_element("title", {}, one.hover);
  svg.element("rect", {{"x", box.x},
                       {"y", box.y},
                       {"width", box.width},
                       {"height", box.height},
                       {"rx", one.kind.starts_with("run") ? 8.0 : 2.0}});
  svg.element("text", {{"x", text_x}, {"y", box.y + 17}}, one.title);
  svg.element("text", {{"class", "detail"}, {"x", text_x}, {"y", box.y + 32}}, one.detail);
  svg.close();
}

// Contrast ratios are at least 4.5 for text and 3 for lines (WCAG 2 AA), in light and dark schemes.
// So a superseded run has fainter colours, not less opacity.
constexpr const char* kStyle = R"(
  svg { --page: #ffffff; --ink: #1d2733; --soft: #5b6775; --line: #828d9a;
        --run: #e4edfb; --run-edge: #4a78c2; --old: #f4f7fc; --old-edge: #7a96c0;
        --file: #f6f4ee; --file-edge: #94896a;
        --outside: #ffffff; --bad: #fbe4e2; --bad-edge: #c2504a; --asked: #fff2c4; }
  @media (prefers-color-scheme: dark) {
    svg { --page: #14181d; --ink: #e6ebf1; --soft: #a6b1bf; --line: #6b7785;
          --run: #1e3150; --run-edge: #6d9be3; --old: #182231; --old-edge: #56749f;
          --file: #262621; --file-edge: #7d7660;
          --outside: #14181d; --bad: #44211f; --bad-edge: #e0746d; --asked: #4a3f14; } }
  .page { fill: var(--page); }
  text { font: 12px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: var(--ink); }
  text.detail { font-size: 10px; fill: var(--soft); }
  rect { stroke-width: 1.2; }
  .run rect { fill: var(--run); stroke: var(--run-edge); }
  .run.old rect { fill: var(--old); stroke: var(--old-edge); }
  .run.bad rect { fill: var(--bad); stroke: var(--bad-edge); }
  .file rect { fill: var(--file); stroke: var(--file-edge); }
  .file.outside rect { fill: var(--outside); stroke-dasharray: 4 3; }
  .file.asked rect { fill: var(--asked); stroke-width: 2; }
  path.line { fill: none; stroke: var(--line); stroke-width: 1.3; }
  path.stale { stroke: var(--bad-edge); stroke-dasharray: 5 4; }
  marker path { fill: var(--line); }
  marker.stale path { fill: var(--bad-edge); }
)";

// A double-quoted Graphviz string. Backslash sequences ("\n", "\N") and HTML entities ("&lt;") have
// a meaning there and are escaped.
std::string dot_string(std::string_view text) {
  std::string result = "\"";
  for (const char c : base::printable(text)) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
    if (c == '&') result += "amp;";
  }
  return result + "\"";
}

}  // namespace

std::string dag_svg(const DagView& view) {
  std::vector<Drawn> drawn;
  std::vector<Line> lines;
  std::vector<bool> stale;
  std::vector<std::size_t> box_of(view.dag->runs.size());
  for (const std::size_t run : view.order) {
    box_of[run] = drawn.size();
    drawn.push_back(drawn_run(view.dag->runs[run].run));
  }
  for (const Bundle& bundle : view.bundles) {
    if (bundle.producer) {
      lines.push_back({box_of[*bundle.producer], drawn.size()});
      stale.push_back(false);
    }
    for (std::size_t i = 0; i < bundle.consumers.size(); ++i) {
      lines.push_back({drawn.size(), box_of[bundle.consumers[i]]});
      stale.push_back(bundle.stale[i]);
    }
    drawn.push_back(drawn_bundle(view, bundle));
  }
  std::vector<Box> boxes;
  for (const Drawn& one : drawn) {
    const double title = static_cast<double>(base::display_width(one.title)) * kCharWidth;
    const double detail = static_cast<double>(base::display_width(one.detail)) * kSmallWidth;
    boxes.push_back({.width = std::max(title, detail) + 2 * kPadding, .height = kHeight});
  }
  const Point size = lay_out(boxes, lines);

  const double width = std::round(size.x + 2 * kMargin);
  const double height = std::round(size.y + 2 * kMargin);
  plot::XmlWriter svg;
  svg.open("svg", {{"xmlns", "http://www.w3.org/2000/svg"},
                   {"viewBox", fmt::format("0 0 {} {}", width, height)},
                   {"width", width},
                   {"height", height},
                   {"role", "img"}});
  svg.element(
      "title", {},
      fmt::format("{} and {}",
                  base::counted(static_cast<std::int64_t>(view.dag->runs.size()), "run"),
                  base::counted(static_cast<std::int64_t>(view.dag->files.size()), "file")));
  svg.verbatim_element("style", {}, kStyle);
  svg.open("defs", {});
  write_tip(svg, "tip", "");
  write_tip(svg, "tip-stale", "stale");
  svg.close();
  svg.element("rect", {{"class", "page"}, {"width", "100%"}, {"height", "100%"}});
  svg.open("g", {{"transform", fmt::format("translate({0} {0})", kMargin)}});
  for (std::size_t i = 0; i < lines.size(); ++i) {
    svg.element("path", {{"class", stale[i] ? "line stale" : "line"},
                         {"marker-end", stale[i] ? "url(#tip-stale)" : "url(#tip)"},
                         {"d", curve(lines[i].points)}});
  }
  for (std::size_t i = 0; i < drawn.size(); ++i) write_box(svg, drawn[i], boxes[i]);
  svg.close();
  svg.close();
  return svg.text();
}

std::string dag_dot(const DagView& view) {
  std::string text =
      "digraph lineage {\n  rankdir=LR;\n  node [fontname=\"monospace\", fontsize=10];\n"
      "  edge [color=\"#7a7a7a\"];\n";
  for (const std::size_t index : view.order) {
    const store::RunRecord& run = view.dag->runs[index].run;
    const std::string label =
        fmt::format("{} {}", short_name(run), base::shortened(command_text(run), 40));
    text += fmt::format(
        "  run{} [shape=box, style=\"rounded,filled\", fillcolor=\"#e3ecfa\", label={}, "
        "tooltip={}];\n",
        run.id, dot_string(label), dot_string(command_text(run)));
  }
  for (std::size_t b = 0; b < view.bundles.size(); ++b) {
    const Bundle& bundle = view.bundles[b];
    text += fmt::format("  file{} [shape=note, label={}, tooltip={}];\n", b,
                        dot_string(base::shortened_middle(view.label(bundle, 2), 40)),
                        dot_string(view.label(bundle, 20)));
    if (bundle.producer) {
      text += fmt::format("  run{} -> file{};\n", view.dag->runs[*bundle.producer].run.id, b);
    }
    for (std::size_t i = 0; i < bundle.consumers.size(); ++i) {
      text += fmt::format("  file{} -> run{}{};\n", b, view.dag->runs[bundle.consumers[i]].run.id,
                          bundle.stale[i] ? " [style=dashed]" : "");
    }
  }
  return text + "}\n";
}

}  // namespace assay::lineage
