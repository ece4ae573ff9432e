// PartFolder: the folder on the ranks' common file system through which the tasks of a job hand
// their parts (part.h) to the task of rank 0.
//
//   rank-3.state   "HOST COUNT": rank 3 is recorded on HOST; COUNT grows while it works at its part
//   rank-3.part    the part, complete: it appears by a rename
//
// Rank 0 waits as long as something grows, and names the ranks whose part does not come.
#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.h"
#include "lineage/record/part.h"

namespace assay::lineage {

// Folders of parts are named so.
inline constexpr std::string_view kPartFolderPrefix = ".parts-";

// This process records one rank of a job whose ranks something else has started.
struct PartOf {
  int rank = 0;
  int ranks = 1;
  std::filesystem::path folder;  // of this job alone; shared by its tasks
  // Whether another job, or an earlier attempt at this one, could have used the same folder.
  bool may_be_old = false;
};

class PartFolder {
 public:
  // Says that this rank is recorded here. Rank 0 removes the parts of an earlier attempt.
  static base::Result<PartFolder> open(const PartOf& part, const std::string& host);

  // Rank 0: notes in the run's spool folder where the parts are, for who recovers the run if this
  // process is killed; and what was noted there.
  base::Result<void> note_in(const std::filesystem::path& spool) const;
  static std::optional<PartFolder> of_interrupted(const std::filesystem::path& spool);

  // Other ranks: the part is being made, until hand_over() or the end of the result.
  class Working {
   public:
    explicit Working(std::function<void(std::int64_t)> tell);
    ~Working();
    Working(const Working&) = delete;
    Working& operator=(const Working&) = delete;

   private:
    std::function<void(std::int64_t)> tell_;
    std::mutex mutex_;
    std::condition_variable wake_;
    bool done_ = false;
    std::thread thread_;
  };
  [[nodiscard]] std::unique_ptr<Working> working() const;
  base::Result<void> hand_over(const Part& part) const;

  struct Patience {
    std::chrono::milliseconds for_any{15'000};         // that was never heard of
    std::chrono::milliseconds without_change{30'000};  // of those that were
    std::chrono::milliseconds in_all{3'600'000};
  };
  struct Missing {
    int rank = 0;
    std::string host;  // empty: not heard of
    std::string why;
    // For the run's record: what is missing in it.
    [[nodiscard]] store::Missed text() const;
  };
  struct Collected {
    std::vector<Part> parts;       // by rank, without rank 0's
    std::vector<Missing> missing;  // by rank
  };
  // Rank 0: the others' parts. `waiting` is called once if it takes long. Then the folder is
  // removed.
  [[nodiscard]] Collected collect(const Patience& patience,
                                  const std::function<void(const std::string&)>& waiting) const;

 private:
  // A rank that has not handed its part over yet.
  struct Awaited {
    std::string state;  // as it was read last
    std::chrono::steady_clock::time_point changed;
  };
  // True: it need not be waited for any longer.
  bool look_at(int rank, Awaited& other, const std::set<std::string>& names,
               std::chrono::steady_clock::time_point begun, const Patience& patience,
               Collected& collected) const;

  PartFolder(PartOf part, std::string host) : part_(std::move(part)), host_(std::move(host)) {}
  [[nodiscard]] std::filesystem::path file(int rank, const char* kind) const;
  void tell(std::int64_t count) const;

  PartOf part_;
  std::string host_;
};

}  // namespace assay::lineage
