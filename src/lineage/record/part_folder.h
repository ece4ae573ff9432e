// PartFolder: the folder on a file system shared by the ranks, through which the tasks of a job
// hand their parts (part.h) to the task of rank 0.
//
//   rank-3.state   "HOST RECORDER COUNT": rank 3 is recorded on HOST, by the process of that name;
//                  COUNT grows while it works at its part
//   rank-3.part    the part, complete: it appears by a rename
//   rank-0.state   the same of rank 0, which removes the folder at its end
//   RECORDER…      while a rank runs: its spool folder, and which run its program has joined
//
// Several attempts at a job may get the same folder from a launcher, and killed processes leave
// files there. So a part names the run it belongs to (Part::run), and collect_parts.h takes only
// those of this run.
#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/result.h"
#include "base/units.h"
#include "lineage/record/part.h"

namespace assay::lineage {

// No rank-N.state is longer.
inline constexpr base::Bytes kMostState{4096};

// Names of such folders begin with this.
inline constexpr std::string_view kPartFolderPrefix = ".parts-";

// This process records one rank of a job whose ranks a launcher has started.
struct PartOf {
  int rank = 0;
  int ranks = 1;
  std::filesystem::path folder;  // only of this job; shared by its tasks
  // Whether another job, or an earlier attempt at this one, could have used the same folder.
  bool may_be_old = false;
};

class PartFolder {
 public:
  // Announces that this rank is recorded by this process. `recorder` is a unique name of the
  // process; on rank 0, the run's uid.
  static base::Result<PartFolder> open(const PartOf& part, const std::string& host,
                                       const std::string& recorder);

  // Rank 0: writes the location of the parts into the run's spool folder, for recovery if this
  // process is killed; and reads it back, given the run's uid.
  base::Result<void> note_in(const std::filesystem::path& spool) const;
  static std::optional<PartFolder> of_interrupted(const std::filesystem::path& spool,
                                                  const std::string& run);

  // A heartbeat that lasts as long as the object: other ranks send it while they prepare their
  // part, rank 0 as long as the run lasts.
  class Heartbeat {
   public:
    Heartbeat(std::function<void(std::int64_t)> send, std::chrono::milliseconds every);
    ~Heartbeat();
    Heartbeat(const Heartbeat&) = delete;
    Heartbeat& operator=(const Heartbeat&) = delete;

   private:
    std::function<void(std::int64_t)> send_;
    std::mutex mutex_;
    std::condition_variable wake_;
    bool done_ = false;
    std::thread thread_;
  };
  [[nodiscard]] std::unique_ptr<Heartbeat> start_heartbeat(std::chrono::milliseconds every) const;
  static constexpr std::chrono::milliseconds kPartHeartbeat{1'000};
  static constexpr std::chrono::milliseconds kRunHeartbeat{10'000};
  // Whether rank 0's heartbeat is recent: for other nodes, where its process is not visible.
  [[nodiscard]] bool is_run_alive() const;
  // Refused if nobody would ever collect the part. `rank_0_is_recorded` is what rank 0's program
  // told this rank; if nothing, rank 0 must have announced itself, or do so within `timeout`.
  base::Result<void> hand_over(const Part& part, std::optional<bool> rank_0_is_recorded,
                               std::chrono::milliseconds timeout = kAnnouncementTimeout) const;
  // Other ranks, after they have removed their own files: withdraws the announcement, and removes
  // the folder if it is empty.
  void leave() const;
  // Rank 0: removes the folder, unless a later attempt uses it by now.
  void remove() const;
  // The same for a rank 0 that is not recorded.
  static void remove(const PartOf& part);

  [[nodiscard]] const PartOf& part() const { return part_; }
  [[nodiscard]] const std::string& recorder() const { return recorder_; }
  [[nodiscard]] std::filesystem::path file(int rank, const char* kind) const;

  // A rank's parsed state file. Whatever is in the file, the names are short and printable.
  struct State {
    std::string host;
    std::string recorder;
  };
  static std::optional<State> parse_state(std::string_view text);

  static constexpr std::chrono::milliseconds kAnnouncementTimeout{15'000};

 private:
  PartFolder(PartOf part, std::string host, std::string recorder)
      : part_(std::move(part)), host_(std::move(host)), recorder_(std::move(recorder)) {}
  base::Result<void> write_state(std::int64_t count) const;
  [[nodiscard]] bool is_announced_within(int rank, std::chrono::milliseconds timeout) const;

  PartOf part_;
  std::string host_;
  std::string recorder_;
};

}  // namespace assay::lineage
