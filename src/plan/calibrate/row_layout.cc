#include "plan/calibrate/row_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "plan/calibrate/row_text.h"
#include "plan/search/layouts.h"

namespace assay::plan {
namespace {

// More ranks than these that share a sequence are a row that forgot something.
constexpr double kMostContexts = 64;
// Measured rates are rounded: so far from a whole number of ranks, and it is another.
constexpr double kRounding = 0.02;

// What a layout may not contradict.
struct Limits {
  double per_node = 8;
  std::optional<double> data;       // ranks that read different sequences
  std::optional<double> sequences;  // of a step, one per such rank at least
};

bool divides(double divisor, double number) {
  return std::fmod(number, divisor) == 0;
}

std::optional<double> data_ranks(const RowFields& row, const std::optional<double>& sequences) {
  if (!sequences || !row.micro_batch || !row.grad_accum) return std::nullopt;
  const double exact = *sequences / (*row.micro_batch * *row.grad_accum);
  const double ranks = std::nearbyint(exact);
  if (ranks < 1 || std::abs(exact / ranks - 1) > kRounding || !divides(ranks, *row.gpus))
    return std::nullopt;
  return ranks;
}

// Replicas or shards, where a row says neither.
bool shards_weights(Framework framework) {
  switch (framework) {
    case Framework::kFoundry:
    case Framework::kKempner:
    case Framework::kAutomodel:
    case Framework::kZero3:
      return true;
    default:
      return false;
  }
}

std::vector<double> ways(bool free, double left) {
  if (!free) return {1};
  const auto divisors = divisors_of(static_cast<std::int64_t>(left));
  return {divisors.begin(), divisors.end()};
}

// All ways to give the ranks that are left to the degrees that are not stated. Where not every rank
// finds a place, those ways that leave the fewest, to be split over sequences.
class Spreader {
 public:
  Spreader(const RowFields& row, const Shape& shape, Framework framework, const Limits& limits)
      : row_(row), shape_(shape), framework_(framework), limits_(limits) {}

  std::vector<Degrees> spread(const Degrees& said, double left) {
    for (const double data : ways(!row_.dp || !row_.fsdp, left)) {
      const double readers = said.dp * said.fsdp * data;
      if (limits_.data && readers != *limits_.data) continue;
      if (limits_.sequences && readers > *limits_.sequences) continue;
      for (const double tp : ways(!row_.tp, left / data)) {
        if (!row_.tp && (tp > limits_.per_node || !divides(tp, shape_.heads))) continue;
        for (const double pp : ways(!row_.pp, left / data / tp)) {
          if (!row_.pp && pp > shape_.layers) continue;
          Degrees degrees = said;
          degrees.tp *= tp;
          degrees.pp *= pp;
          add(degrees, data, left / (data * tp * pp));
        }
      }
    }
    return std::move(found_);
  }

 private:
  void add(Degrees degrees, double data, double rest) {
    // Experts may have a separate axis, which then explains what is left.
    if (shape_.is_moe() && degrees.ep > 1 && divides(degrees.ep, rest)) rest /= degrees.ep;
    if (rest > kMostContexts || rest > fewest_left_) return;
    if (rest < fewest_left_) found_.clear();
    fewest_left_ = rest;
    degrees.cp *= rest;
    const bool either = !row_.dp && !row_.fsdp;
    const bool shards = either ? shards_weights(framework_) : !row_.fsdp;
    Degrees replicas = degrees;
    (shards ? degrees.fsdp : degrees.dp) *= data;
    found_.push_back(degrees);
    // PyTorch does either; whether weights fit unsharded decides.
    if (!either || framework_ != Framework::kTorch || data == 1) return;
    replicas.fsdp *= data;
    found_.push_back(replicas);
  }

  const RowFields& row_;
  const Shape& shape_;
  Framework framework_;
  const Limits& limits_;
  double fewest_left_ = std::numeric_limits<double>::infinity();
  std::vector<Degrees> found_;
};

std::string impossible_degree(const RowFields& row, const Shape& shape) {
  const double tp = row.tp.value_or(1);
  const double pp = row.pp.value_or(1);
  const double ep = row.ep.value_or(1);
  if (!divides(tp, shape.heads)) return fmt::format("tp: {} ranks of {} heads", tp, shape.heads);
  if (pp > shape.layers) return fmt::format("pp: {} stages of {} layers", pp, shape.layers);
  if (ep > 1 && !shape.is_moe())
    return fmt::format("ep: {} ranks, and the model is not known to have experts", ep);
  if (ep > shape.experts) return fmt::format("ep: {} ranks of {} experts", ep, shape.experts);
  return {};
}

std::string taken(const RowFields& row, const Degrees& degrees, bool cp_said) {
  std::string text;
  const auto add = [&](bool said, std::string_view name, double degree) {
    if (!said && degree > 1) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, degree);
  };
  add(row.dp.has_value(), "dp", degrees.dp);
  add(row.fsdp.has_value(), "fsdp", degrees.fsdp);
  add(row.tp.has_value(), "tp", degrees.tp);
  add(row.pp.has_value(), "pp", degrees.pp);
  add(row.ep.has_value(), "ep", degrees.ep);
  add(cp_said, "cp", degrees.cp);
  return text.empty() ? text : text + " assumed";
}

// If stages would idle for more than 30 % of the time, interleaving is assumed.
double probable_chunks(const RowFields& row, const Shape& shape, Framework framework,
                       const Degrees& d) {
  constexpr double kMostIdle = 0.3;
  const bool other_schedule = !has_interleaving(framework) || contains(row.lower_notes, "1f1b") ||
                              (!row.schedule.empty() && !contains(row.schedule, "interleaved"));
  if (!row.grad_accum || other_schedule || (d.pp - 1) / *row.grad_accum <= kMostIdle) return 1;
  // Two layers or so in a chunk, and as many in each.
  const double most = std::ceil(shape.layers / d.pp);
  for (const double layers : {2.0, 3.0})
    if (divides(layers, most)) return most / layers;
  return most;
}

}  // namespace

RowLayouts row_layouts(const RowFields& row, const Shape& shape, Framework framework,
                       const std::optional<double>& sequences) {
  RowLayouts result;
  if (result.reason = impossible_degree(row, shape); !result.reason.empty()) return result;
  const auto contexts = row.cp ? row.cp : number_after(row.notes, "cp=", true);
  Degrees said{.dp = row.dp.value_or(1),
               .fsdp = row.fsdp.value_or(1),
               .tp = row.tp.value_or(1),
               .pp = row.pp.value_or(1),
               .cp = contexts.value_or(1),
               .ep = row.ep.value_or(1),
               .ranks = *row.gpus};
  const double product = said.dp * said.fsdp * said.tp * said.pp * said.cp;
  const std::string unfilled =
      fmt::format("dp * fsdp * tp * pp: {} ranks, which do not fill {} gpus", product, said.ranks);
  if (product > said.ranks || !divides(product, said.ranks)) {
    result.reason = unfilled;
    return result;
  }
  double left = said.ranks / product;
  const bool all_said = row.dp && row.fsdp && row.tp && row.pp;
  if (shape.is_moe() && !row.ep && all_said && left <= shape.experts) said.ep = left;

  // Experts that do not fit among the ranks that read data have a separate axis.
  const bool data_said = row.dp && row.fsdp;
  if (said.ep > 1 && data_said && !divides(said.ep, said.dp * said.fsdp) && divides(said.ep, left))
    left /= said.ep;

  Limits limits{.per_node = row.gpus_per_node.value_or(8), .sequences = sequences};
  if (!all_said) limits.data = data_ranks(row, sequences);
  result.candidates = Spreader(row, shape, framework, limits).spread(said, left);
  if (result.candidates.empty() && limits.data) {  // the batch contradicts the degrees
    limits.data.reset();
    result.candidates = Spreader(row, shape, framework, limits).spread(said, left);
  }
  if (result.candidates.empty()) {
    result.reason = unfilled;
    return result;
  }
  auto chunks = row.vp;
  if (!chunks) chunks = number_after(row.notes, "vp=", true);
  if (!chunks) chunks = number_after(row.notes, "interleave=", false);
  for (Degrees& d : result.candidates) {
    if (d.pp > 1) d.chunks = chunks ? *chunks : probable_chunks(row, shape, framework, d);
    d.gpipe = d.pp > 1 && contains(row.schedule, "gpipe");
    d.zero_bubble = d.pp > 1 && contains_any(row.schedule, {"zero", "zb", "dualpipe", "v-half"});
    d.two_rounds = contains(row.schedule, "zb-2p");
    if (shape.is_moe() && d.ep == 1 && contains(row.lower_notes, "deepep"))
      d.ep = std::min(d.fsdp > 1 ? d.fsdp : d.dp, shape.experts);
    // Rows say degrees of which the shards of PyTorch's FSDP are the product.
    d.cp_shards =
        d.cp > 1 && framework != Framework::kAssay && (d.fsdp > 1 || always_shards(framework));
    d.ep_axis = d.ep > 1 && d.dp * d.fsdp * d.tp * d.pp * d.cp * d.ep == d.ranks;
  }
  if (result.candidates.size() > 1) {
    result.assumed = "layout unknown: the fastest that fits assumed";
  } else {
    result.assumed = taken(row, result.candidates.front(), contexts.has_value());
  }
  for (Degrees& d : result.candidates)
    if (d.cp_shards) d.fsdp *= d.cp;
  return result;
}

}  // namespace assay::plan
