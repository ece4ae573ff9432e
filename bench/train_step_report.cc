#include "train_step_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "base/statistics.h"
#include "base/units.h"
#include "spec/parameters.h"
#include "step/op.h"
#include "train/float_bits.h"

namespace assay::bench {
namespace {

constexpr double kPeak = 989e12;  // FLOP/s of a Hopper GPU in bf16, as published

// Normal numbers from a pool of prime length, so that no two rows are equal: generating each would
// take longer than the measurement.
class Pool {
 public:
  Pool() : normal_(kLength) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (float& value : normal_) value = normal(random);
  }
  void fill(std::vector<std::uint16_t>& to, double standard_deviation) {
    std::vector<std::uint16_t>& halves = scaled_[standard_deviation];
    for (std::size_t i = halves.size(); i < kLength; ++i) {
      const float value = static_cast<float>(standard_deviation) * normal_[i];
      halves.push_back(train::split_master(value).high);
    }
    for (std::size_t at = 0; at < to.size();) {
      const std::size_t count = std::min(to.size() - at, kLength - next_);
      std::copy_n(halves.begin() + static_cast<std::ptrdiff_t>(next_), count,
                  to.begin() + static_cast<std::ptrdiff_t>(at));
      at += count;
      next_ = (next_ + count) % kLength;
    }
  }

 private:
  static constexpr std::size_t kLength = 16777213;
  std::vector<float> normal_;
  std::map<double, std::vector<std::uint16_t>> scaled_;  // as bf16
  std::size_t next_ = 0;
};

struct Row {
  double ms = 0;
  double flops = 0;
  double bytes = 0;
  int count = 0;
};

// What a mixture has and a dense model has not, or the products of experts.
const char* group_of(const step::Op& op) {
  switch (op.kind) {
    case step::OpKind::kRoute:
    case step::OpKind::kRouteGrad:
      return "mixture: route";
    case step::OpKind::kSortRows:
    case step::OpKind::kGatherRows:
      return "mixture: permute";
    case step::OpKind::kCombineRows:
      return "mixture: combine";
    case step::OpKind::kGroupedMatmul:
      return "mixture: products of experts";
    case step::OpKind::kMatmul:
      return op.part == step::ModelPart::kRouter ? "mixture: products of routers" : nullptr;
    default:
      return nullptr;
  }
}

std::string label_of(const step::Op& op) {
  std::string label(step::to_text(op.kind));
  if (op.kind == step::OpKind::kMatmul || op.kind == step::OpKind::kGroupedMatmul) {
    const char* pass = op.transpose_a ? "weights" : op.transpose_b ? "forward" : "inputs";
    label += fmt::format(" {} {}", step::to_text(op.part), pass);
  }
  return label;
}

}  // namespace

base::Result<void> fill_weights(train::Backend& backend, const step::Program& p) {
  constexpr std::int64_t kPiece = std::int64_t{1} << 25U;
  Pool pool;
  std::vector<std::uint16_t> piece;
  for (const step::Parameter& parameter : p.parameters) {
    for (std::int64_t first = 0; first < parameter.elements(); first += kPiece) {
      const std::int64_t count = std::min(kPiece, parameter.elements() - first);
      piece.assign(static_cast<std::size_t>(count), 0);
      if (parameter.init == step::Init::kNormal) pool.fill(piece, parameter.init_std);
      if (parameter.init == step::Init::kOnes) {
        std::fill(piece.begin(), piece.end(), train::split_master(1.0F).high);
      }
      const step::View view{p.unit_of(parameter).weights, parameter.offset + first, 1, count,
                            count};
      ASSAY_TRY_VOID(backend.write(view, std::as_bytes(std::span(piece))));
    }
  }
  return {};
}

void print_speed(const step::Program& p, std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const double median = base::median(seconds);
  const auto tokens = static_cast<double>(p.step_tokens());
  const spec::FlopsPerToken flops = spec::flops_per_token(p.model, p.choices.sequence);
  const auto use = [&](double per_token) { return 100 * tokens / median * per_token / kPeak; };
  fmt::print("{:.0f} tokens/s; ms per step: median {:.1f}, min {:.1f}, max {:.1f}\n",
             tokens / median, 1e3 * median, 1e3 * seconds.front(), 1e3 * seconds.back());
  fmt::print(
      "MFU {:.1f} % (all parameters), {:.1f} % (matmul parameters); executed {:.0f} TFLOP/s\n",
      use(flops.with_embedding), use(flops.without_embedding), p.flops() / median / 1e12);
}

base::Result<void> print_load(train::Backend& backend, const step::Program& p, double waited) {
  std::vector<float> loads(static_cast<std::size_t>(p.loads.elements()));
  ASSAY_TRY_VOID(backend.read(p.loads, std::as_writable_bytes(std::span(loads))));
  const auto experts = static_cast<std::size_t>(p.loads.cols);
  double largest = 0;
  for (std::size_t first = 0; first < loads.size(); first += experts) {
    double sum = 0;
    double most = 0;
    for (std::size_t i = first; i < first + experts; ++i) {
      sum += static_cast<double>(loads[i]);
      most = std::max(most, static_cast<double>(loads[i]));
    }
    largest = std::max(largest, most * static_cast<double>(experts) / sum);
  }
  fmt::print(
      "load: the fullest expert of a layer has {:.2f} times an even share; the host waits "
      "{:.1f} ms of a step for the rows of experts\n",
      largest, 1e3 * waited);
  return {};
}

void print_memory(const step::MemoryPlan& plan, const train::cuda::MemoryUse& use) {
  const auto text = [](std::int64_t bytes) { return base::to_text(base::Bytes(bytes)); };
  fmt::print("memory: plan {}, workspace {}, measured {};", text(use.planned), text(use.workspace),
             text(use.measured));
  for (int i = 0; i < 7; ++i) {
    fmt::print(" {} {}", step::to_text(static_cast<step::Storage>(i)), text(plan.of_storage[i]));
  }
  fmt::print("\n");
}

void print_profile(const std::vector<train::cuda::OpTime>& times, const step::Program& p) {
  std::map<std::string, Row> rows;
  std::map<std::string, Row> groups;
  double busy = 0;
  double idle = 0;
  double idle_before_experts = 0;
  for (const train::cuda::OpTime& time : times) {
    const auto add = [&](Row& row) {
      row.ms += time.ms;
      row.flops += time.op->flops;
      row.bytes += step::moved_bytes(*time.op, p.buffers).total();
      ++row.count;
    };
    add(rows[label_of(*time.op)]);
    if (const char* group = group_of(*time.op)) add(groups[group]);
    if (time.op->kind == step::OpKind::kGroupedMatmul) idle_before_experts += time.idle_ms;
    busy += time.ms;
    idle += time.idle_ms;
  }
  fmt::print("{:<32} {:>6} {:>9} {:>6} {:>8} {:>6}\n", "op", "times", "ms", "%", "TFLOP/s", "TB/s");
  const auto print = [&](const std::string& label, const Row& row) {
    fmt::print("{:<32} {:>6} {:>9.3f} {:>6.1f} {:>8.0f} {:>6.2f}\n", label, row.count, row.ms,
               100 * row.ms / (busy + idle), row.flops / row.ms / 1e9, row.bytes / row.ms / 1e9);
  };
  for (const auto& [label, row] : rows) print(label, row);
  fmt::print("{:<32} {:>6} {:>9.3f} {:>6.1f}\n", "between ops", "", idle,
             100 * idle / (busy + idle));
  fmt::print("{:<32} {:>6} {:>9.3f}\n", "all", times.size(), busy + idle);
  if (groups.empty()) return;
  for (const auto& [label, row] : groups) print(label, row);
  fmt::print("{:<32} {:>6} {:>9.3f} {:>6.2f}\n", "idle before products of experts", "",
             idle_before_experts, 100 * idle_before_experts / (busy + idle));
}

}  // namespace assay::bench
