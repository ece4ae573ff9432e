#include "comm/communicator.h"

#include <fmt/format.h>

#include <array>

namespace assay::comm {
namespace {

constexpr std::array<std::string_view, 5> kTypes = {"u8", "i32", "bf16", "f32", "f64"};
constexpr std::array<std::int64_t, 5> kTypeBytes = {1, 4, 2, 4, 8};
constexpr std::array<std::string_view, 2> kReductions = {"sum", "max"};
constexpr std::array<std::string_view, 6> kCollectives = {
    "all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all", "barrier"};

}  // namespace

std::int64_t bytes_of(Dtype type) {
  return kTypeBytes[static_cast<std::size_t>(type)];
}

std::string to_text(const Call& call) {
  std::string text(kCollectives[static_cast<std::size_t>(call.collective)]);
  if (call.collective == Collective::kBarrier) return text;
  text += fmt::format(" of {} {}", call.count, kTypes[static_cast<std::size_t>(call.type)]);
  if (call.collective == Collective::kAllReduce || call.collective == Collective::kReduceScatter) {
    text += fmt::format(", {}", kReductions[static_cast<std::size_t>(call.reduction)]);
  }
  if (call.collective == Collective::kBroadcast) text += fmt::format(" from rank {}", call.root);
  return text;
}

base::Result<std::int64_t> Communicator::broadcast_value(std::int64_t value, int root) {
  ASSAY_TRY_VOID(broadcast(&value, sizeof value, Dtype::kU8, root));
  return value;
}

base::Result<bool> Communicator::any_rank(bool condition) {
  std::uint8_t flag = condition ? 1 : 0;
  ASSAY_TRY_VOID(all_reduce(&flag, &flag, 1, Dtype::kU8, Reduction::kMax));
  return flag != 0;
}

}  // namespace assay::comm
