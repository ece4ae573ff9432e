// RunFolder: the folder to which a run writes checkpoints and metrics. Only one trainer may use it
// at a time: two would remove each other's checkpoints. A folder that was created for the run is
// removed if the run ends before anything was trained, unless another trainer is using it by then.
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

// The error for a new run in a folder that already has checkpoints.
base::Error already_has_checkpoints(const std::filesystem::path& folder);

class RunFolder {
 public:
  // Creates the folder and missing parent folders.
  static base::Result<RunFolder> make(const std::filesystem::path& folder);
  // Checks whether the run may start in the folder. With `lock`, also locks it for this trainer,
  // waiting a moment for one that is just ending; with several ranks, rank 0 holds the lock. On
  // file systems without locks nothing is locked.
  base::Result<void> take(StartFrom from, bool lock);
  // Keeps the folder, whatever is in it.
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
