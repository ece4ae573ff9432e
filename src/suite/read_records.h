// RecordBook: what was measured earlier and elsewhere, as a suite's figures name it: each by
// itself, or with what [record.NAME] says of several.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "base/result.h"
#include "spec/value.h"
#include "suite/suite.h"

namespace assay::suite {

class RecordBook {
 public:
  // `records` is the table of all [record.NAME], or null; it must outlive this.
  explicit RecordBook(const spec::Value* records) : records_(records) {}

  // What stands at `recorded`; nothing if nothing does.
  base::Result<std::optional<Recorded>> recorded_of(const spec::Value* value);

  // A record that no figure names is one that somebody forgot.
  [[nodiscard]] base::Result<void> all_used() const;

 private:
  const spec::Value* records_;
  std::set<std::string, std::less<>> used_;
};

}  // namespace assay::suite
