// ReportedRun: everything that is known about one run of the store, as its part of a page, its
// trace and its live values are made from. What other rooms know (how files are connected, what a
// plan says, what is charged for machines) is handed in as plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plot/axis.h"
#include "plot/flow.h"
#include "store/metrics.h"
#include "store/run.h"

namespace assay::report {

// What went into the run and came out of it, as far as it is shown.
struct LineageView {
  std::vector<plot::FlowBox> inputs;
  std::vector<plot::FlowBox> outputs;
};

// What the model of a step says about the run, where it can.
struct Predicted {
  std::string of;                  // "llama3-8b-h200 on NVIDIA H200"
  std::string source;              // "planned when the run started, 2026-11-16 07:00:00 UTC"
  double step_s = 0;               // here and below, 0: it says nothing about this
  plot::Interval step_interval_s;  // 80 %
  double tokens_per_s = 0;
  double mfu = 0;
  double mfu_6n = 0;
  double memory_bytes = 0;
  std::vector<std::pair<std::string, double>> parts_s;
};

// What somebody asks for such machines.
struct Offer {
  std::string provider;
  std::string name;
  std::string market;
  std::string date;
  double low_per_hour = 0;  // for all devices of the run, in dollars
  double high_per_hour = 0;
  std::string source;
};

struct Rates {
  std::optional<double> dollars_per_hour;  // --price
  std::vector<Offer> offers;               // of the presets, where nobody said a price
  std::optional<double> grams_per_kwh;     // --carbon
};

struct ReportedRun {
  store::RunRecord record;
  std::string command;            // as a shell takes it
  std::int64_t seen_unix_ns = 0;  // when this was read: a run that runs has run until then
  std::vector<store::MetricSeries> metrics;
  LineageView lineage;
  std::optional<Predicted> predicted;
  std::string not_predicted;  // why not
  Rates rates;
};

// The quantity of the first source that measured it; null if none did.
const store::MetricSeries* series_of(const ReportedRun& run, std::string_view name,
                                     std::int64_t source = 0);

// Of a series' numbers; those that are not finite are left out.
struct Summary {
  std::int64_t count = 0;  // of numbers
  std::int64_t missing = 0;
  double least = 0;
  double most = 0;
  double median = 0;
  double p90 = 0;
  double p99 = 0;
  double mean = 0;
  double sum = 0;
  double last = 0;
};
std::optional<Summary> summary_of(const store::MetricSeries* series);

// When steps were done, in seconds since the run began; empty where nobody noted it.
struct StepEnd {
  std::int64_t step = 0;
  double at_s = 0;
  double took_s = 0;  // 0: not known
};
std::vector<StepEnd> step_ends(const ReportedRun& run);

// How long the run ran: what the store says, or while it runs until it was looked at.
double ran_s(const ReportedRun& run);

// A unit in which a run of this length reads well.
struct TimeUnit {
  const char* name;
  double per_second;
};
TimeUnit run_unit(double seconds);

// A number as a chart has room for it: four digits, and never an exponent where it can be helped.
std::string figure(double value);

// A number with its unit, for people: "12.3 ms", "4.10 GiB", "41.2 %", "9,120 tokens/s".
std::string amount(double value, std::string_view unit);

}  // namespace assay::report
