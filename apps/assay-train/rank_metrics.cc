#include "assay-train/rank_metrics.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/host_name.h"
#include "step/layout.h"

namespace assay::cli {
namespace {

// Memory is allocated before the first step and stays; a query at every step would slow it down.
constexpr double kMeasureEvery_s = 1;

// A rank's constant facts, sent once.
struct RankFacts {
  std::array<char, 64> host{};
  std::int64_t planned_bytes = 0;
};

}  // namespace

train::RankSample RankTelemetry::end_step(double seconds) {
  last_.step_s = seconds;
  last_.wait_s = groups_.take_waited_s();
  if (!since_measured_ || since_measured_->elapsed().count() >= kMeasureEvery_s) {
    last_.memory_bytes = std::max(last_.memory_bytes, backend_.measured_bytes());
    last_.host_bytes = std::max(last_.host_bytes, host_.now().peak_bytes);
    since_measured_.emplace();
  }
  return last_;
}

base::Result<RankTable> RankTable::gather(const Membership& member, const spec::JobSpec& job,
                                          std::int64_t planned_bytes) {
  RankFacts own{.planned_bytes = planned_bytes};
  base::host_name().copy(own.host.data(), own.host.size() - 1);
  std::vector<RankFacts> all(static_cast<std::size_t>(member.assignment().ranks));
  ASSAY_TRY_VOID(
      member.world().all_gather(&own, all.data(), sizeof(RankFacts), comm::ElementType::kU8));
  RankTable table;
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].host.back() = '\0';
    const auto rank = static_cast<std::int64_t>(i);
    table.ranks_.push_back({.rank = rank,
                            .host = all[i].host.data(),
                            .place = place_text(job.layout, rank),
                            .planned_bytes = all[i].planned_bytes});
  }
  return table;
}

void RankTable::stepped(std::int64_t step, std::span<const train::RankSample> samples) {
  // The first step also includes preparations; it counts only if it is the only one.
  const bool second = ++steps_ == 2;
  for (std::size_t i = 0; i < std::min(samples.size(), ranks_.size()); ++i) {
    const train::RankSample& sample = samples[i];
    store::RankRecord& rank = ranks_[i];
    if (second) {
      rank.steps = 0;
      rank.step_s = 0;
      rank.wait_s.reset();
    }
    rank.step = step;
    rank.steps += 1;
    rank.step_s += sample.step_s;
    rank.last_step_s = sample.step_s;
    rank.last_wait_s = sample.wait_s;
    rank.wait_s = rank.wait_s.value_or(0) + sample.wait_s;
    rank.memory_bytes = std::max(rank.memory_bytes, sample.memory_bytes);
    rank.host_bytes = std::max(rank.host_bytes, sample.host_bytes);
  }
}

std::string place_text(const spec::LayoutSpec& layout, std::int64_t rank) {
  const auto place = step::layout_of(layout, rank);
  if (!place) return "";
  std::vector<std::string> parts;
  const auto add = [&](const char* name, const step::AxisPosition& along) {
    if (along.ranks > 1) parts.push_back(fmt::format("{} {}", name, along.rank));
  };
  add("dp", place->replica);
  add("fsdp", place->shard);
  add("ep", place->expert);
  add("tp", place->tensor);
  add("cp", place->context);
  add("pp", place->pipeline);
  return fmt::format("{}", fmt::join(parts, ", "));
}

base::Json rank_json(const store::RankRecord& rank) {
  return {{"rank", rank.rank},
          {"host", rank.host},
          {"place", rank.place},
          {"step_s", rank.mean_step_s()},
          {"wait_s", base::or_null(rank.mean_wait_s())},
          {"planned_bytes", rank.planned_bytes},
          {"measured_bytes", rank.memory_bytes},
          {"host_peak_bytes", rank.host_bytes}};
}

}  // namespace assay::cli
