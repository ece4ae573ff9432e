// RecordBook: figures measured earlier and elsewhere, each with its origin (machine, date, commit,
// command), given with the figure or shared through [record.NAME].
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

  // Reads the figure in `value`; nothing if that is null.
  base::Result<std::optional<RecordedValue>> recorded_of(const spec::Value* value);

  // An error if a record is not used by any figure.
  [[nodiscard]] base::Result<void> all_used() const;

 private:
  const spec::Value* records_;
  std::set<std::string, std::less<>> used_;
};

}  // namespace assay::suite
