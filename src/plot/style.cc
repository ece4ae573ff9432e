#include "plot/style.h"

#include <fmt/format.h>

#include <array>
#include <iterator>

namespace assay::plot {
namespace {

// A named colour: on paper and light screens, and on dark ones.
struct Shade {
  std::string_view name;
  std::string_view light;
  std::string_view dark;
};

// Okabe and Ito's palette, sorted by readability as thin lines, with a darker yellow; on dark
// background blue is lighter and black is grey. on-N is the colour of text on colour N.
constexpr std::array<Shade, 5 + 2 * kColours> kShades = {{
    {"ink", "#1b1e23", "#e8eaed"},   {"soft", "#5b626b", "#a4abb5"},
    {"grid", "#e4e7eb", "#2e343c"},  {"edge", "#8b929b", "#6d7580"},
    {"paper", "#ffffff", "#14171b"}, {"c0", "#0072b2", "#3d9fe0"},
    {"c1", "#d55e00", "#e8722a"},    {"c2", "#009e73", "#14b88a"},
    {"c3", "#cc79a7", "#d98fb8"},    {"c4", "#e69f00", "#eeae2b"},
    {"c5", "#56b4e9", "#9bd6f7"},    {"c6", "#4d4d4d", "#b5b9bf"},
    {"c7", "#c4b400", "#f2e96b"},    {"on-c0", "#ffffff", "#0d0f12"},
    {"on-c1", "#16181b", "#0d0f12"}, {"on-c2", "#0d0f12", "#0d0f12"},
    {"on-c3", "#16181b", "#0d0f12"}, {"on-c4", "#16181b", "#0d0f12"},
    {"on-c5", "#16181b", "#0d0f12"}, {"on-c6", "#ffffff", "#0d0f12"},
    {"on-c7", "#16181b", "#0d0f12"},
}};

// Font sizes are those of labels.h.
constexpr std::string_view kFixedRules = R"(
.assay-plot text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;font-size:12px;font-variant-numeric:tabular-nums}
.assay-plot .title{font-size:16px;font-weight:600}
.assay-plot .small{font-size:11px}
.assay-plot .strong{font-weight:600}
.assay-plot .middle{text-anchor:middle}
.assay-plot .end{text-anchor:end}
.assay-plot .grid,.assay-plot .edge{stroke-width:1;fill:none}
.assay-plot .line{stroke-width:2;fill:none;stroke-linejoin:round;stroke-linecap:round}
.assay-plot .thin{stroke-width:1.25;fill:none}
.assay-plot .dashes{stroke-width:1.5;stroke-dasharray:5 4;fill:none}
.assay-plot .level{stroke-width:1.25;fill:none}
.assay-plot .dots-and-dashes{stroke-width:1.5;stroke-dasharray:8 3 2 3;fill:none}
.assay-plot .dots{stroke-width:3.5;stroke-opacity:.4;stroke-linecap:round;fill:none}
.assay-plot .wire{stroke-width:1.5;stroke-opacity:.8;fill:none}
.assay-plot .card{stroke-width:1.25;fill-opacity:.1}
.assay-plot .hatch{stroke-width:1;stroke-opacity:.3;fill:none}
.assay-plot .band{fill-opacity:.18;stroke:none}
.assay-plot .error{stroke-width:1.25;stroke-opacity:.65;fill:none}
.assay-plot .apart{stroke-width:1.25}
.assay-plot .halo{stroke-width:4;stroke-linejoin:round;paint-order:stroke}
)";

void variables(std::string& sheet, std::string_view Shade::*shade) {
  sheet += ".assay-plot{";
  for (const Shade& s : kShades) {
    fmt::format_to(std::back_inserter(sheet), "--{}:{};", s.name, s.*shade);
  }
  sheet += "}";
}

// The colour itself comes first, for programs that do not support variables.
void rule(std::string& sheet, std::string_view selector, std::string_view property,
          const Shade& shade) {
  fmt::format_to(std::back_inserter(sheet), ".assay-plot .{0}{{{1}:{2};{1}:var(--{3})}}\n",
                 selector, property, shade.light, shade.name);
}

std::string made_sheet() {
  std::string sheet = "\n.assay-plot{max-width:760px;height:auto}\n";
  variables(sheet, &Shade::light);
  // Paper is light, whatever the screen was.
  sheet += "\n@media screen and (prefers-color-scheme:dark){";
  variables(sheet, &Shade::dark);
  sheet += "}";
  sheet += kFixedRules;
  for (const Shade& shade : kShades) {
    rule(sheet, fmt::format("fill-{}", shade.name), "fill", shade);
    rule(sheet, fmt::format("stroke-{}", shade.name), "stroke", shade);
  }
  return sheet;
}

}  // namespace

std::string fill_class(std::size_t series) {
  return fmt::format("fill-c{}", series % kColours);
}

std::string on_fill_class(std::size_t series) {
  return fmt::format("fill-on-c{}", series % kColours);
}

std::string stroke_class(std::size_t series) {
  return fmt::format("stroke-c{}", series % kColours);
}

std::string level_class(std::size_t index) {
  constexpr std::array<std::string_view, 3> kLevels = {"level stroke-soft", "dashes stroke-c1",
                                                       "dots-and-dashes stroke-c2"};
  return std::string(kLevels[index % kLevels.size()]);
}

std::string level_band_class(std::size_t index) {
  return fmt::format("band {}", fill_class(index % 2 == 0 ? 0 : 6));
}

const std::string& style_sheet() {
  static const std::string sheet = made_sheet();
  return sheet;
}

}  // namespace assay::plot
