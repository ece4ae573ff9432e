// RunFolder: the folder that a run writes checkpoints and metrics to. One trainer has it at a time:
// two would remove each other's checkpoints. A folder that it made is removed again if the run ends
// before anything was trained, unless somebody else has it by then.
#pragma once

#include <cstdint>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace assay::train {

enum class StartFrom : std::uint8_t {
  kStepOne,     // refuses a folder that has checkpoints
  kCheckpoint,  // refuses a folder that has none
  kEither,      // a checkpoint if there is one
};

// Of a folder in which a run would begin with step 1.
base::Error already_has_checkpoints(const std::filesystem::path& folder);

class RunFolder {
 public:
  // Makes it, and what is missing above it.
  static base::Result<RunFolder> make(const std::filesystem::path& folder);
  // Whether the run may start in it. With `lock` it becomes this trainer's, after waiting a moment
  // for one that is just ending. Of several ranks, rank 0 has the lock. File systems without locks
  // have none.
  base::Result<void> take(StartFrom from, bool lock);
  // It stays, whatever is in it.
  void keep() { made_from_.clear(); }
  RunFolder(RunFolder&& other) noexcept
      : folder_(std::move(other.folder_)),
        made_from_(std::exchange(other.made_from_, {})),
        lock_(std::move(other.lock_)) {}
  RunFolder& operator=(RunFolder&&) = delete;
  ~RunFolder();

 private:
  explicit RunFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}
  base::Result<void> create();
  base::Result<void> take_lock();
  [[nodiscard]] bool is_ours_to_remove();

  std::filesystem::path folder_;
  // The first folder of the path that did not exist; empty if all of it did.
  std::filesystem::path made_from_;
  base::UniqueFd lock_;
};

}  // namespace assay::train
