// conduct(): runs an experiment, block after block, until its rule says stop, somebody interrupts
// it or an arm fails. Whatever happens, what was measured until then is in the journal.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/result.h"
#include "base/units.h"
#include "compare/host.h"
#include "compare/journal.h"
#include "compare/process.h"
#include "compare/stopping.h"

namespace assay::compare {

// Where it stands, for whoever watches.
struct Standing {
  std::int64_t blocks = 0;
  Estimate estimate;  // the widest
  base::Seconds elapsed;
  std::optional<base::Seconds> left;
};
using Watcher = std::function<void(const Standing&)>;

struct Conducted {
  Stop stop = Stop::kNo;                    // kNo: it was interrupted
  Estimate estimate;                        // the widest, at the end
  std::optional<base::Error> failure = {};  // with kFailed: which run, and why
};

// Goes on after what `measured` has, and adds to it. An error is one of ours, such as a full disk;
// an arm that fails is an end like others.
base::Result<Conducted> conduct(Measured& measured, Journal& journal, Host& host,
                                Interrupts& interrupts, const Watcher& watcher);

}  // namespace assay::compare
