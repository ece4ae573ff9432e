#include "comm/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

namespace assay::comm {
namespace {

constexpr std::array<std::string_view, 5> kTypes = {"u8", "i32", "bf16", "f32", "f64"};
constexpr std::array<std::int64_t, 5> kTypeBytes = {1, 4, 2, 4, 8};
constexpr std::array<std::string_view, 7> kCollectives = {
    "all_gather", "broadcast", "all_to_all", "barrier", "all_to_all_v", "send", "receive"};

bool takes_parts(const Call& call) {
  return call.kind == CommKind::kAllToAllV;
}

bool one_to_one(const Call& call) {
  return call.kind == CommKind::kSend || call.kind == CommKind::kReceive;
}

base::Error wrong(const Call& call, int rank, std::string_view what) {
  return base::usage_error(fmt::format("rank {}", rank),
                           fmt::format("{}: {}", to_text(call), what));
}

// One array of AllToAllParts: an entry per rank, none negative, and a size that fits into memory.
bool fits(std::span<const std::int64_t> counts, std::span<const std::int64_t> offsets, int ranks) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 32;
  const auto ok = [](std::int64_t value) { return value >= 0 && value <= kMost; };
  const auto all = static_cast<std::size_t>(ranks);
  return counts.size() == all && offsets.size() == all && std::ranges::all_of(counts, ok) &&
         std::ranges::all_of(offsets, ok);
}

base::Result<void> checked(const Call& call, int rank, int ranks, const AllToAllParts& parts) {
  if (call.count < 0 || call.count > std::numeric_limits<std::int64_t>::max() / 16 / ranks) {
    return base::fail(wrong(call, rank, "the count is out of range"));
  }
  if (call.kind == CommKind::kBroadcast && (call.root < 0 || call.root >= ranks)) {
    return base::fail(wrong(call, rank, fmt::format("the group has ranks 0 to {}", ranks - 1)));
  }
  if (one_to_one(call) && (call.peer < 0 || call.peer >= ranks || call.peer == rank)) {
    return base::fail(wrong(call, rank, "the peer must be another rank of the group"));
  }
  if (takes_parts(call) && !parts.on_device &&
      !(fits(parts.send_counts, parts.send_offsets, ranks) &&
        fits(parts.receive_counts, parts.receive_offsets, ranks))) {
    return base::fail(wrong(call, rank, "needs a count and an offset for every rank"));
  }
  return {};
}

}  // namespace

std::int64_t bytes_of(ElementType type) {
  return kTypeBytes[static_cast<std::size_t>(type)];
}

std::string to_text(const Call& call) {
  std::string text(kCollectives[static_cast<std::size_t>(call.kind)]);
  if (call.kind == CommKind::kBarrier) return text;
  const std::string_view type = kTypes[static_cast<std::size_t>(call.type)];
  if (call.kind == CommKind::kAllToAllV) return fmt::format("{} of {}", text, type);
  text += fmt::format(" of {} {}", call.count, type);
  if (call.kind == CommKind::kBroadcast) text += fmt::format(" from rank {}", call.root);
  return text;
}

base::Result<Ticket> Communicator::issue(const Call& call, const void* in, void* out, Stream stream,
                                         const AllToAllParts& parts) {
  ASSAY_TRY_VOID(checked(call, rank(), ranks(), parts));
  return start(call, in, out, parts, stream);
}

base::Result<std::unique_ptr<Communicator>> Communicator::split(int color, int key) {
  struct SplitArguments {
    std::int64_t color, key, next_id;
  };
  const SplitArguments mine = {color, key, next_group_id()};
  std::vector<SplitArguments> all(static_cast<std::size_t>(ranks()));
  ASSAY_TRY_VOID(all_gather(&mine, all.data(), sizeof mine, ElementType::kU8));

  // Every rank computes the same ids, all unused on every rank: two groups that share two ranks
  // never have the same id.
  std::int64_t first_id = 0;
  std::vector<std::int64_t> colors;
  std::vector<int> members;
  for (int rank = 0; rank < ranks(); ++rank) {
    const SplitArguments& choice = all[static_cast<std::size_t>(rank)];
    first_id = std::max(first_id, choice.next_id);
    if (choice.color >= 0) colors.push_back(choice.color);
    if (color >= 0 && choice.color == color) members.push_back(rank);
  }
  std::ranges::sort(colors);
  colors.erase(std::unique(colors.begin(), colors.end()), colors.end());
  set_next_group_id(first_id + static_cast<std::int64_t>(colors.size()));
  if (color < 0) return nullptr;
  std::ranges::stable_sort(members, {},
                           [&](int rank) { return all[static_cast<std::size_t>(rank)].key; });
  return subgroup(members, first_id + (std::ranges::lower_bound(colors, color) - colors.begin()));
}

base::Result<std::int64_t> Communicator::broadcast_value(std::int64_t value, int root) {
  ASSAY_TRY_VOID(broadcast(&value, sizeof value, ElementType::kU8, root));
  return value;
}

base::Result<bool> Communicator::any_rank(bool condition) {
  const std::uint8_t mine = condition ? 1 : 0;
  std::vector<std::uint8_t> all(static_cast<std::size_t>(ranks()));
  ASSAY_TRY_VOID(all_gather(&mine, all.data(), 1, ElementType::kU8));
  return std::ranges::any_of(all, [](std::uint8_t flag) { return flag != 0; });
}

}  // namespace assay::comm
