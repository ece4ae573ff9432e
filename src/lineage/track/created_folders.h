// Which folders of a run's outputs it made itself: they must not exist when it is reproduced. mkdir
// is not observed, so this uses the creation time (btime) that the file system keeps.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace assay::lineage {

// Whether the folder was made at `since_ns` (the file system's clock) or later; false if `since_ns`
// is 0 or the file system keeps no creation times.
bool created_at_or_after(const std::string& folder, std::int64_t since_ns);

class CreatedFolders {
 public:
  void add_output(std::string_view path);
  // The folders above the outputs that were made at `since_ns` (the file system's clock) or later,
  // sorted. None if the file system keeps no creation times.
  [[nodiscard]] std::vector<std::string> created_since(std::int64_t since_ns) const;

 private:
  std::string last_;  // most outputs are in the same folder as the one before
  std::set<std::string, std::less<>> folders_;
};

}  // namespace assay::lineage
