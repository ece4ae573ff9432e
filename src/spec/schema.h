// The schema: the keys of each section, with types and defaults. schema.cc describes every section
// once; reading, JSON and documentation are derived from that description.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "spec/job.h"
#include "spec/value.h"

namespace assay::spec {

// The largest values a spec may have: far above any real machine, and small enough that later
// arithmetic is exact in 64 bits.
inline constexpr double kMostNodes = 1e6;
inline constexpr double kMostDegree = 1e6;  // of one kind of parallelism
inline constexpr double kMostRanks = 1e7;
inline constexpr double kMostCpus = 1e6;
inline constexpr double kMostNumaNodes = 1e4;
inline constexpr double kMostSequences = 1e6;  // per micro-batch, and micro-batches per step
inline constexpr double kMostStepTokens = 1e12;
inline constexpr double kMostTokens = 1e17;

struct KeyDoc {
  std::string path;      // "model.layers"
  std::string expected;  // "a whole number from 1 to 100,000"
  std::string fallback;  // "required", "unset" or the default
  std::string meaning;
};

// A document's sections, as written; absent sections have their defaults.
struct Sections {
  ModelSpec model;
  BatchSpec batch;
  TrainSpec train;
  DataSpec data;
  CheckpointSpec checkpoint;
  LayoutSpec layout;
  ClusterSpec cluster;
  DeviceSpec device;
  std::vector<PriceSpec> price;
};

// Reads the sections of a composed document (without `extends`). Types, ranges and unknown keys are
// checked here; rules between keys are in rules.h.
base::Result<Sections> read_sections(const Value& document);

// A key and its value as text, for people.
struct KeyRow {
  std::string key;
  std::string value;
};

// For ModelSpec, BatchSpec, TrainSpec, DataSpec, CheckpointSpec, LayoutSpec, ClusterSpec,
// DeviceSpec and PriceSpec. Numbers with a unit name it in their JSON key: memory_bytes,
// bandwidth_bytes_per_s.
template <class T>
base::Json section_json(const T& section);
template <class T>
std::vector<KeyRow> section_rows(const T& section);

// Every key, in the order in which the sections are usually written.
std::vector<KeyDoc> all_keys();

// "model.layers=", for the completion of --set.
std::vector<std::string> override_keys();

}  // namespace assay::spec
