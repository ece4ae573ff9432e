#include "lineage/track/path_statuses.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>

#include "hash/segments.h"
#include "lineage/track/folder_handle.h"
#include "lineage/track/signals_blocked.h"

namespace assay::lineage {
namespace {

constexpr std::size_t kPart = 256;  // taken at a time; fewer are not worth a thread

}  // namespace

std::vector<PathStatus> statuses_of(std::size_t count,
                                    const std::function<PlaceOfFile(std::size_t i)>& place_of) {
  std::vector<PathStatus> statuses(count);
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    FolderHandle handle;
    for (std::size_t from = 0; (from = next.fetch_add(kPart)) < count;) {
      for (std::size_t i = from; i < std::min(from + kPart, count); ++i) {
        const PlaceOfFile place = place_of(i);
        if (place.folder == nullptr) continue;
        const FolderHandle::At at = handle.at(*place.folder, place.name);
        statuses[i] = status_at(at.directory, at.path);
      }
    }
  };
  std::vector<std::jthread> helpers;
  const std::size_t most =
      std::min<std::size_t>(hash::usable_threads(), (count + kPart - 1) / kPart);
  try {
    const SignalsBlocked blocked;
    while (helpers.size() + 1 < most) helpers.emplace_back(work);
  } catch (const std::system_error&) {
    // No more threads can be created: the existing ones do the work.
  }
  work();
  return statuses;
}

}  // namespace assay::lineage
