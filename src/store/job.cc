#include "store/job.h"

#include "base/check.h"

namespace assay::store {

std::string_view name_of(JobStatus status) {
  switch (status) {
    case JobStatus::kRunning:
      return "running";
    case JobStatus::kDone:
      return "done";
    case JobStatus::kFailed:
      return "failed";
    case JobStatus::kInterrupted:
      return "interrupted";
  }
  ASSAY_CHECK(false, "every status has a name");
}

std::string_view name_of(OutputStatus status) {
  switch (status) {
    case OutputStatus::kCreated:
      return "created";
    case OutputStatus::kModified:
      return "modified";
    case OutputStatus::kRenamed:
      return "renamed";
    case OutputStatus::kLinked:
      return "linked";
    case OutputStatus::kDeleted:
      return "deleted";
  }
  ASSAY_CHECK(false, "every status has a name");
}

}  // namespace assay::store
