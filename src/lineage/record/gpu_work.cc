#include "lineage/record/gpu_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "share/limits.h"

namespace assay::lineage {

store::GpuWork gpu_work(const collect::GpuReport& report, std::vector<store::Missed>& problems) {
  store::GpuWork work;
  for (std::size_t i = 0; i < wire::kGpuQuantities; ++i) {
    const wire::GpuTotals::Total& total = report.totals.of[i];
    if (total.calls == 0) continue;
    work.use.push_back({wire::name_of(static_cast<wire::GpuQuantity>(i)),
                        static_cast<std::int64_t>(total.calls),
                        static_cast<std::int64_t>(total.amount)});
  }
  for (const collect::GpuReport::Memory& memory : report.memory) {
    work.memory.push_back({memory.uuid, static_cast<std::int64_t>(memory.peak_bytes)});
  }
  for (const collect::GpuReport::Share& one : report.shares) {
    store::GpuShare share{.device = one.uuid,
                          .priority = std::string(share::name_of(one.share.priority)),
                          .borrow = one.share.borrow,
                          .busy_ns = static_cast<std::int64_t>(one.busy_ns),
                          .waited_ns = static_cast<std::int64_t>(one.waited_ns)};
    if (one.byte_limit != 0) {
      share.memory_bytes = static_cast<std::int64_t>(
          std::min<std::uint64_t>(one.byte_limit, std::numeric_limits<std::int64_t>::max()));
    }
    if (one.share.thousandths < wire::kGpuWholeShare) {
      share.share_thousandths = one.share.thousandths;
    }
    work.shares.push_back(std::move(share));
  }
  for (const collect::GpuReport::Collective& row : report.collectives) {
    work.collectives.push_back(
        {fmt::format("{:016x}", row.communicator), static_cast<std::int64_t>(row.ranks),
         wire::name_of(row.operation), wire::nccl_type_name(row.type),
         static_cast<std::int64_t>(row.calls), static_cast<std::int64_t>(row.bytes)});
  }
  if (report.lost > 0) {
    problems.push_back({"gpu", fmt::format("{} threads found no place to count GPU work in: it "
                                           "was more than is told",
                                           report.lost)});
  }
  return work;
}

}  // namespace assay::lineage
