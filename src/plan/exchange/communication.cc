#include "plan/exchange/communication.h"

#include <algorithm>
#include <tuple>

#include "plan/exchange/data_parallel.h"
#include "plan/exchange/sharded_muon.h"
#include "spec/parameters.h"

namespace assay::plan {
namespace {

// An upper bound of what is added up: tensors and their number both padded to the ranks, four bytes
// an element, three exchanges per micro-batch and a few per step.
bool fits_64_bits(const spec::JobSpec& job) {
  const auto ranks = static_cast<long double>(job.layout.fsdp);
  long double elements = 0;
  for (const spec::ParameterGroup& group : spec::parameters_of(job.model).groups) {
    elements += (static_cast<long double>(group.count) + ranks) *
                (static_cast<long double>(group.elements_each()) + ranks);
  }
  const auto exchanges = 3 * static_cast<long double>(job.batch.accumulate) + 4;
  return elements * 4 * exchanges < 9e18L;
}

// Gradients are summed before weights are gathered.
int place_in_step(step::CollectiveKind kind) {
  if (kind == step::CollectiveKind::kReduceScatter) return 0;
  return kind == step::CollectiveKind::kAllReduce ? 1 : 2;
}

}  // namespace

Volume& Volume::operator+=(const Volume& other) {
  reduce_scatter += other.reduce_scatter;
  all_gather += other.all_gather;
  all_reduce += other.all_reduce;
  all_to_all += other.all_to_all;
  send += other.send;
  return *this;
}

Volume Volume::operator*(std::int64_t factor) const {
  return {reduce_scatter * factor, all_gather * factor, all_reduce * factor, all_to_all * factor,
          send * factor};
}

Volume Communication::bytes() const {
  Volume sum;
  for (const GroupTraffic& group : groups) sum += group.bytes();
  return sum;
}

Volume Communication::two_byte_bytes() const {
  Volume sum;
  for (const GroupTraffic& group : groups) sum += group.two_byte_bytes();
  return sum;
}

double Communication::sent_bytes() const {
  double sum = 0;
  for (const Exchange& exchange : exchanges) {
    sum += step::sent_bytes(exchange.collective) * static_cast<double>(exchange.calls);
  }
  return sum;
}

std::vector<CallSummary> Communication::calls() const {
  std::vector<CallSummary> summaries;
  for (const Exchange& exchange : exchanges) {
    const step::Collective& one = exchange.collective;
    auto at = std::find_if(summaries.begin(), summaries.end(), [&](const CallSummary& summary) {
      return summary.kind == one.kind && summary.type == one.type;
    });
    if (at == summaries.end()) {
      at = summaries.insert(at, {one.kind, one.type, 0, 0, one.bytes(), one.bytes()});
    }
    at->calls += exchange.calls;
    at->bytes += exchange.calls * one.bytes();
    at->least_bytes = std::min(at->least_bytes, one.bytes());
    at->most_bytes = std::max(at->most_bytes, one.bytes());
  }
  std::sort(summaries.begin(), summaries.end(), [](const CallSummary& a, const CallSummary& b) {
    return std::tuple(place_in_step(a.kind), step::to_text(a.type)) <
           std::tuple(place_in_step(b.kind), step::to_text(b.type));
  });
  return summaries;
}

base::Result<Communication> communication_of(const spec::JobSpec& job) {
  if (!fits_64_bits(job)) {
    return base::fail(base::usage_error("model", "a step exchanges more bytes than 64 bits count",
                                        "make the model or layout.fsdp smaller"));
  }
  return is_sharded_muon(job) ? sharded_muon(job) : data_parallel(job);
}

}  // namespace assay::plan
