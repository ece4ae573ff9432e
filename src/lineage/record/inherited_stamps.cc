#include "lineage/record/inherited_stamps.h"

#include <chrono>
#include <thread>

#include "lineage/track/hash_task.h"
#include "lineage/track/stamp.h"

namespace assay::lineage {
namespace {

constexpr int kLooks = 4;
constexpr std::chrono::milliseconds kBetween{10};

void take_stamp(collect::Inherited& file) {
  const std::int64_t now_ns = file_clock_ns();  // before the look
  struct stat status {};
  if (::fstat(file.descriptor, &status) != 0) return;
  file.stamp = to_wire(stamp_of(status));
  file.racy = racily_new(to_hash(file.stamp), now_ns);
}

}  // namespace

void take_stamps(std::vector<collect::Inherited>& files) {
  for (collect::Inherited& file : files) {
    if (!file.writable || collect::is_standard_stream(file.descriptor)) continue;
    take_stamp(file);
    for (int look = 1; file.racy && look < kLooks; ++look) {
      std::this_thread::sleep_for(kBetween);
      take_stamp(file);
    }
  }
}

}  // namespace assay::lineage
