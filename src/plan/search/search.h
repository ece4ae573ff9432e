// Search: which machines to rent from whom, how many, and how to spread the job over them.
//
//   ASSAY_TRY(const auto machines, machines_for(job, "my-job", prices, /*presets=*/true));
//   ASSAY_TRY(const Found found, search(job, machines, {.limits = {.deadline = hours(48)}}));
//
// For each number of machines the fastest layout is taken: at any price per hour, a faster step
// costs less. Then each offer prices the whole run with everything that may interrupt it, at the
// checkpoint interval that minimizes lost time; what remains is a choice between time and money.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/money.h"
#include "base/result.h"
#include "plan/failures/risks.h"
#include "plan/model/intervals.h"
#include "plan/search/fastest_layout.h"
#include "plan/search/machines.h"

namespace assay::plan {

struct SearchLimits {
  std::optional<base::Seconds> deadline;  // that 90 % of runs must meet
  std::optional<base::Money> budget;      // likewise
  std::int64_t min_devices = 1;
  std::int64_t max_devices = std::numeric_limits<std::int64_t>::max();
  std::optional<base::Bytes> memory;  // of a card, at most
  // Fraction of a card's memory that is left free. Default: for our trainer, whose memory is
  // counted, the largest measured error; for other software, enough for 9 of 10 measured runs
  // (memory_intervals).
  std::optional<double> memory_headroom;
};

struct SearchChoices {
  SearchLimits limits;
  Risks risks = default_risks();
  Assumed assumed;
  ModelConstants constants;
  IntervalTable intervals = shipped_intervals();  // around predicted steps
  Seen seen = shipped_seen();
  MemoryIntervals memory_intervals;  // around predicted memory
  Sampling sampling;
};

// Machines, the layout of the job on them, an offer, and the outcome of the run.
struct Candidate {
  std::size_t place = 0;  // among the kinds and numbers of machines that were searched
  std::string machines;
  std::int64_t nodes = 0;
  std::int64_t devices = 0;
  LayoutChoice choice;
  spec::PriceSpec offer;
  std::int64_t rented = 1;  // times the offer
  SpotPolicy policy = SpotPolicy::kOnDemand;
  base::Seconds step_low;  // the 80 % interval
  base::Seconds step_high;
  base::Seconds work;      // all steps, undisturbed
  base::Seconds interval;  // useful work from one checkpoint to the next
  base::Seconds time_p50;
  base::Seconds time_p90;     // with failures and the errors of predictions
  spec::PriceRange cost_p50;  // as wide as the offer's price
  spec::PriceRange cost_p90;
  double interruptions = 0;  // expected: failures and preemptions
  double miss_chance = 0;    // of the deadline
  std::string misses;        // the limit that it does not meet; empty if it meets all

  // A range counts by its upper end: what a run may cost.
  [[nodiscard]] double cost() const { return cost_p50.high.units(); }
};

struct Found {
  std::vector<Candidate> candidates;  // by time
  // Positions among them.
  std::vector<std::size_t> front;          // time against cost, both P50, of those within limits
  std::optional<std::size_t> fastest;      // within limits
  std::optional<std::size_t> cheapest;     // likewise
  std::optional<std::size_t> recommended;  // likewise: see `why`
  std::string why;                         // it is recommended, or there is nothing to recommend
  std::string unoffered;                   // it fits, but no offer has such machines: the reason
  bool others_may_do = false;   // nothing is recommended, and it would be on better machines
  std::int64_t considered = 0;  // layouts x micro-batches x recomputations x machines
  // Those about prices first, then the most frequent. Layouts are counted by their degrees, what
  // does not fit in memory by micro-batches and recomputations as well.
  std::vector<Rejection> rejected;
  std::vector<Assumption> assumptions;
};

// What is recommended and what is on the front is counted (LayoutChoice::counted), where our
// trainer runs it: `assay plan` of it says the same. The same input gives the same answer. Fails
// for a job that cannot be predicted or has no training length, and where there is no offer for any
// of the machines.
base::Result<Found> search(const spec::JobSpec& job, const std::vector<Machines>& machines,
                           const SearchChoices& choices = {});

// "on demand", "spot", "spot, on demand when behind".
std::string_view to_text(SpotPolicy policy);

}  // namespace assay::plan
