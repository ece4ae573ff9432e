#include "assay-train/live_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/units.h"

namespace assay::cli {
namespace {

struct Piece {
  int rank;  // the highest goes first
  std::string text;
};

std::string clock_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  if (whole >= 3600) {
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  }
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

std::vector<Piece> pieces_of(const MeasuredStep& step, std::optional<double> validation_loss) {
  const train::StepReport& r = step.report;
  std::vector<Piece> pieces = {
      {0, fmt::format("step {:>{}}/{}", r.step, std::to_string(r.steps).size(), r.steps)},
      {0, fmt::format("loss {:.4f}", r.loss)}};
  const auto add = [&](int rank, std::string text) { pieces.push_back({rank, std::move(text)}); };
  if (r.left_out) add(0, "left out: gradients not finite");
  if (validation_loss) add(5, fmt::format("val {:.4f}", *validation_loss));
  add(6, fmt::format("norm {:.3f}", r.gradient_norm));
  add(8, fmt::format("lr {:.2e}", r.learning_rate));
  add(0, fmt::format("{} tok/s", base::grouped(static_cast<std::int64_t>(r.tokens_per_s))));
  if (step.utilisation) {
    add(2, fmt::format("MFU {:.1f} % (6N {:.1f} %)", 100 * step.utilisation->mfu,
                       100 * step.utilisation->mfu_6n));
  }
  if (step.use.memory_bytes > 0) add(4, base::to_text(base::Bytes(step.use.memory_bytes)));
  if (const auto watts = step.watts()) add(3, fmt::format("{:.0f} W", *watts));
  if (step.use.power.clock_mhz) add(7, fmt::format("{:.0f} MHz", *step.use.power.clock_mhz));
  return pieces;
}

std::string joined(const std::vector<Piece>& pieces) {
  std::string line;
  for (const Piece& piece : pieces) line += (line.empty() ? "" : "  ") + piece.text;
  return line;
}

}  // namespace

std::string live_line(const MeasuredStep& step, std::optional<double> validation_loss,
                      std::optional<double> eta_seconds, std::optional<std::size_t> columns) {
  std::vector<Piece> pieces = pieces_of(step, validation_loss);
  if (eta_seconds) pieces.push_back({1, "ETA " + clock_text(*eta_seconds)});
  std::string line = joined(pieces);
  while (columns && line.size() >= *columns) {
    const auto least =
        std::max_element(pieces.begin(), pieces.end(),
                         [](const Piece& a, const Piece& b) { return a.rank < b.rank; });
    if (least->rank == 0) {
      line.resize(*columns == 0 ? 0 : *columns - 1);
      break;
    }
    pieces.erase(least);
    line = joined(pieces);
  }
  return line;
}

}  // namespace assay::cli
