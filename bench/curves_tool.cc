// curves_tool OUT.svg TITLE NAME=METRICS.jsonl…: the losses of runs of `assay train` as one
// picture, for docs/train.md.
#include <fmt/format.h>

#include <algorithm>

#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "plot/lines.h"

namespace {

using namespace assay;

constexpr base::Bytes kMostBytes(std::int64_t{1} << 30U);

base::Result<plot::LineSeries> curve(const std::string& argument) {
  const auto equals = argument.find('=');
  if (equals == std::string::npos) {
    return base::fail(base::usage_error(argument, "is not NAME=FILE"));
  }
  plot::LineSeries series{.name = argument.substr(0, equals)};
  ASSAY_TRY(const std::string text, base::read_file(argument.substr(equals + 1), kMostBytes));
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const base::Json row = base::Json::parse(text.substr(at, end - at), nullptr, false);
    at = end + 1;
    if (!row.is_object() || !row.contains("loss") || !row["loss"].is_number()) continue;
    series.points.push_back({row["step"].get<double>(), row["loss"].get<double>()});
  }
  return series;
}

base::Result<void> draw(const std::vector<std::string>& arguments) {
  if (arguments.size() < 3) {
    return base::fail(base::usage_error("curves_tool", "name a file, a title and curves"));
  }
  plot::Lines lines{.heading = {arguments[1]}, .x = {.title = "step"}, .y = {.title = "loss"}};
  for (std::size_t i = 2; i < arguments.size(); ++i) {
    ASSAY_TRY(plot::LineSeries series, curve(arguments[i]));
    lines.series.push_back(std::move(series));
  }
  return base::write_file(arguments[0], plot::draw(lines).svg());
}

}  // namespace

int main(int argc, char** argv) {
  const auto done = draw({argv + 1, argv + argc});
  if (done) return 0;
  fmt::print(stderr, "{}\n", done.error().line());
  return 64;
}
