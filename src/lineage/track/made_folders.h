// Which folders of a run's outputs it made itself: those must not be there when it is reproduced.
// Making a folder is not observed; the file system keeps when a folder was made.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace assay::lineage {

// Whether the folder was made at `since_ns` (the file system's clock) or later; false where the
// file system does not keep when, or nothing is given (0).
bool made_at_or_after(const std::string& folder, std::int64_t since_ns);

class MadeFolders {
 public:
  void add_output(std::string_view path);
  // Of the folders above the outputs, those made at `since_ns` (the file system's clock) or later,
  // sorted. None where the file system does not keep when.
  [[nodiscard]] std::vector<std::string> made_since(std::int64_t since_ns) const;

 private:
  std::string last_;  // most outputs are in the folder of the one before
  std::set<std::string, std::less<>> folders_;
};

}  // namespace assay::lineage
