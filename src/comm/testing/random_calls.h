// Random calls on random groups, each checked against its definition. Every rank derives the same
// calls from the same seed, but interleaves those of different groups in its own order, has them
// all in flight, and waits for them in its own order.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <random>

#include "base/error.h"
#include "comm/communicator.h"

namespace assay::comm::testing {

using Bytes = std::vector<std::byte>;
constexpr std::byte kUntouched{0xee};

// The memory that holds the buffers of calls.
class CallMemory {
 public:
  virtual ~CallMemory() = default;
  // Memory that contains these bytes, until clear().
  virtual std::byte* place(const Bytes& bytes) = 0;
  // Its contents, after the host has synchronised with the stream.
  virtual Bytes fetch(const std::byte* from, std::size_t bytes) = 0;
  virtual void clear() = 0;
  virtual Stream stream() { return {}; }
  // Whether ranks send to their neighbours only (Communicator::connect_neighbours).
  [[nodiscard]] virtual bool only_neighbours() const { return false; }
};

class HostMemory : public CallMemory {
 public:
  std::byte* place(const Bytes& bytes) override { return placed_.emplace_back(bytes).data(); }
  Bytes fetch(const std::byte* from, std::size_t bytes) override { return {from, from + bytes}; }
  void clear() override { placed_.clear(); }

 private:
  std::deque<Bytes> placed_;
};

// A group as the test expects it; members are ranks of the whole job.
struct GroupMember {
  Communicator* communicator = nullptr;
  std::vector<int> members;
  int rank = 0;

  [[nodiscard]] int ranks() const { return static_cast<int>(members.size()); }
};

// A random call; every rank draws the same.
struct Draw {
  int number = 0;
  std::size_t family = 0;  // which split
  CommKind kind = CommKind::kBarrier;
  std::int64_t count = 0;
  ElementType type = ElementType::kU8;
  int chosen = 0;  // root, or distance of the peer
  bool in_place = false;
};

// The bytes that a rank (numbered as in the whole job) passes to a call.
inline std::byte byte_of(int call, int rank, std::size_t i) {
  auto hash = static_cast<std::uint64_t>(call) * std::uint64_t{0x9e3779b97f4a7c15};
  hash ^= (static_cast<std::uint64_t>(rank) + 1) * std::uint64_t{0xbf58476d1ce4e5b9};
  hash ^= (std::uint64_t{i} + 1) * std::uint64_t{0x94d049bb133111eb};
  return static_cast<std::byte>((hash ^ (hash >> 29U)) >> 24U);
}

// Elements sent from one rank to another in all_to_all_v, and their offsets, with gaps on purpose.
inline std::int64_t v_count(const Draw& draw, int from, int to) {
  return (draw.count * (from * 7 + to * 3 + draw.number)) % (draw.count + 3);
}
inline std::vector<std::int64_t> v_counts(const Draw& draw, const GroupMember& group, int rank,
                                          bool sent) {
  std::vector<std::int64_t> counts;
  const int self = group.members[static_cast<std::size_t>(rank)];
  for (const int other : group.members) {
    counts.push_back(sent ? v_count(draw, self, other) : v_count(draw, other, self));
  }
  return counts;
}
inline std::vector<std::int64_t> v_offsets(const std::vector<std::int64_t>& counts,
                                           bool backwards) {
  std::vector<std::int64_t> offsets(counts.size());
  std::int64_t at = 1;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::size_t j = backwards ? counts.size() - 1 - i : i;
    offsets[j] = at;
    at += counts[j] + static_cast<std::int64_t>(j % 2);
  }
  return offsets;
}

// A call in flight, with its buffers and their expected contents.
struct InFlightCall {
  GroupMember group;
  Draw draw;
  CommKind kind = CommKind::kBarrier;
  int peer = 0;
  Bytes in, out, expected;
  std::vector<std::int64_t> send_counts, send_offsets, receive_counts, receive_offsets;
  Ticket ticket;
  const std::byte* from = nullptr;
  std::byte* to = nullptr;

  [[nodiscard]] int self() const { return group.members[static_cast<std::size_t>(group.rank)]; }

  void prepare(CallMemory& memory);
  void expect(std::size_t at, int source, std::size_t source_at, std::size_t bytes);
  base::Result<void> issue(Stream stream);
};

inline void InFlightCall::expect(std::size_t at, int source, std::size_t source_at,
                                 std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    expected[at + i] = byte_of(draw.number, source, source_at + i);
  }
}

inline void InFlightCall::prepare(CallMemory& memory) {
  const auto all = static_cast<std::size_t>(group.ranks());
  const auto me = static_cast<std::size_t>(group.rank);
  const auto element = static_cast<std::size_t>(bytes_of(draw.type));
  const std::size_t bytes = static_cast<std::size_t>(draw.count) * element;
  std::size_t in_size = bytes;
  std::size_t out_size = bytes;
  if (kind == CommKind::kAllGather) out_size = bytes * all;
  if (kind == CommKind::kAllToAll) in_size = out_size = bytes * all;
  if (kind == CommKind::kBarrier) in_size = out_size = 0;
  if (kind == CommKind::kAllToAllV) {
    send_counts = v_counts(draw, group, group.rank, true);
    receive_counts = v_counts(draw, group, group.rank, false);
    send_offsets = v_offsets(send_counts, true);
    receive_offsets = v_offsets(receive_counts, false);
    const auto size = static_cast<std::size_t>((draw.count + 5)) * (all + 1) * element;
    in_size = out_size = size;
  }
  in.resize(in_size);
  for (std::size_t i = 0; i < in_size; ++i) in[i] = byte_of(draw.number, self(), i);
  out.assign(out_size, kUntouched);
  expected = out;
  std::size_t from_out = 0;
  bool in_place = false;
  switch (kind) {
    case CommKind::kAllGather:
      for (std::size_t r = 0; r < all; ++r) expect(r * bytes, group.members[r], 0, bytes);
      if (draw.in_place) {
        std::ranges::copy(in, out.begin() + static_cast<std::ptrdiff_t>(me * bytes));
        from_out = me * bytes;
        in_place = true;
      }
      break;
    case CommKind::kAllToAll:
      for (std::size_t r = 0; r < all; ++r) {
        expect(r * bytes, group.members[r], me * bytes, bytes);
      }
      break;
    case CommKind::kBroadcast:
      expect(0, group.members[static_cast<std::size_t>(peer)], 0, bytes);
      if (draw.in_place) {
        out = in;
        in_place = true;
      }
      break;
    case CommKind::kReceive:
      expect(0, group.members[static_cast<std::size_t>(peer)], 0, bytes);
      break;
    case CommKind::kAllToAllV:
      for (std::size_t r = 0; r < all; ++r) {
        const auto theirs = v_counts(draw, group, static_cast<int>(r), true);
        expect(static_cast<std::size_t>(receive_offsets[r]) * element, group.members[r],
               static_cast<std::size_t>(v_offsets(theirs, true)[me]) * element,
               static_cast<std::size_t>(theirs[me]) * element);
      }
      break;
    default:
      break;
  }
  to = memory.place(out);
  from = in_place ? to + from_out : memory.place(in);
}

inline base::Result<void> InFlightCall::issue(Stream stream) {
  Call call = {kind, draw.count, draw.type};
  if (kind == CommKind::kBarrier) call = {};
  if (kind == CommKind::kAllToAllV) call.count = 0;
  if (kind == CommKind::kBroadcast) call.root = peer;
  if (kind == CommKind::kSend || kind == CommKind::kReceive) call.peer = peer;
  ASSAY_TRY(ticket, group.communicator->issue(
                        call, from, to, stream,
                        {send_counts, send_offsets, receive_counts, receive_offsets}));
  return {};
}

// Splits a group further. Draws the colors of all ranks, so that the members are known.
inline base::Result<std::optional<GroupMember>> split_group(
    const std::optional<GroupMember>& parent, int world_ranks, int world_rank, std::mt19937& common,
    std::vector<std::unique_ptr<Communicator>>& owned) {
  std::vector<int> colors, keys;
  for (int rank = 0; rank < world_ranks; ++rank) {
    colors.push_back(static_cast<int>(common() % 4) - 1);
    keys.push_back(static_cast<int>(common() % 5) - 2);
  }
  if (!parent) return std::nullopt;
  const auto me = static_cast<std::size_t>(world_rank);
  ASSAY_TRY(auto made, parent->communicator->split(colors[me], keys[me]));
  if ((made == nullptr) != (colors[me] < 0)) {
    return base::fail(base::failed_error("split", "membership is wrong"));
  }
  if (made == nullptr) return std::nullopt;
  GroupMember known;
  for (const int member : parent->members) {
    if (colors[static_cast<std::size_t>(member)] == colors[me]) known.members.push_back(member);
  }
  std::ranges::stable_sort(known.members, {},
                           [&](int rank) { return keys[static_cast<std::size_t>(rank)]; });
  known.rank =
      static_cast<int>(std::ranges::find(known.members, world_rank) - known.members.begin());
  if (made->ranks() != known.ranks() || made->rank() != known.rank) {
    return base::fail(base::failed_error("split", "the order of ranks is wrong"));
  }
  ASSAY_TRY_VOID(made->connect_neighbours());
  known.communicator = made.get();
  owned.push_back(std::move(made));
  return known;
}

// The calls that a draw makes on this rank: one, or a send and a receive.
inline void add_calls(const Draw& draw, const GroupMember& group, bool only_neighbours,
                      std::vector<InFlightCall>& flights) {
  InFlightCall flight{.group = group, .draw = draw, .kind = draw.kind};
  const int ranks = group.ranks();
  if (draw.kind != CommKind::kSend) {
    flight.peer = draw.chosen % ranks;
    flights.push_back(flight);
    return;
  }
  int distance = draw.chosen % ranks;
  if (only_neighbours) distance = (draw.chosen % 2 == 0 ? 1 : ranks - 1) % ranks;
  if (distance == 0) return;  // to itself
  flight.peer = (group.rank + distance) % ranks;
  flights.push_back(flight);
  flight.kind = CommKind::kReceive;
  flight.peer = (group.rank + ranks - distance) % ranks;
  flights.push_back(flight);
}

inline base::Result<void> make_round(const std::vector<Draw>& draws,
                                     const std::vector<std::optional<GroupMember>>& families,
                                     std::mt19937& own, CallMemory& memory) {
  // Each group's calls stay in order; the interleaving of groups is random per rank.
  std::map<std::size_t, std::vector<InFlightCall>> by_family;
  for (const Draw& draw : draws) {
    if (families[draw.family])
      add_calls(draw, *families[draw.family], memory.only_neighbours(), by_family[draw.family]);
  }
  std::vector<InFlightCall*> order;
  std::map<std::size_t, std::size_t> next;
  std::vector<std::size_t> open;
  for (const auto& [family, flights] : by_family) open.insert(open.end(), flights.size(), family);
  std::shuffle(open.begin(), open.end(), own);
  for (const std::size_t family : open) order.push_back(&by_family[family][next[family]++]);
  for (InFlightCall* flight : order) flight->prepare(memory);
  for (InFlightCall* flight : order) ASSAY_TRY_VOID(flight->issue(memory.stream()));
  std::shuffle(order.begin(), order.end(), own);
  for (InFlightCall* flight : order) {
    ASSAY_TRY_VOID(flight->group.communicator->wait(flight->ticket));
  }
  for (InFlightCall* flight : order) {
    if (flight->kind == CommKind::kSend) continue;
    flight->out = memory.fetch(flight->to, flight->out.size());
    if (flight->out == flight->expected) continue;
    return base::fail(
        base::failed_error(to_text({flight->kind, flight->draw.count, flight->draw.type}),
                           fmt::format("wrong bytes, call {} on rank {} of {}", flight->draw.number,
                                       flight->group.rank, flight->group.ranks())));
  }
  memory.clear();
  return {};
}

inline base::Result<void> make_random_calls(Communicator& world, unsigned seed,
                                            CallMemory& memory) {
  std::mt19937 common(seed);
  std::mt19937 own(seed * 31 + static_cast<unsigned>(world.rank()));
  std::vector<std::unique_ptr<Communicator>> owned;
  std::vector<std::optional<GroupMember>> families(1);
  families[0].emplace();
  families[0]->communicator = &world;
  families[0]->rank = world.rank();
  for (int rank = 0; rank < world.ranks(); ++rank) families[0]->members.push_back(rank);
  const auto splits = common() % 4;
  for (std::size_t i = 0; i < splits; ++i) {
    const std::size_t parent = common() % families.size();
    ASSAY_TRY(auto known,
              split_group(families[parent], world.ranks(), world.rank(), common, owned));
    families.push_back(std::move(known));
  }
  constexpr std::int64_t kCounts[] = {0, 1, 3, 7, 64, 1021, 4097, 12'007};
  constexpr CommKind kKinds[] = {CommKind::kAllGather, CommKind::kAllToAll, CommKind::kBarrier,
                                 CommKind::kBroadcast, CommKind::kSend,     CommKind::kAllToAllV};
  constexpr ElementType kTypes[] = {ElementType::kU8, ElementType::kI32, ElementType::kBf16,
                                    ElementType::kF32, ElementType::kF64};
  int number = 0;
  const auto rounds = 1 + common() % 3;
  for (std::size_t round = 0; round < rounds; ++round) {
    std::vector<Draw> draws(common() % 10);
    for (Draw& draw : draws) {
      draw.number = ++number;
      draw.family = common() % families.size();
      draw.kind = kKinds[common() % std::size(kKinds)];
      draw.count = kCounts[common() % std::size(kCounts)];
      draw.type = kTypes[common() % std::size(kTypes)];
      draw.chosen = static_cast<int>(common() % 64);
      draw.in_place = common() % 2 == 0;
    }
    ASSAY_TRY_VOID(make_round(draws, families, own, memory));
  }
  return {};
}

}  // namespace assay::comm::testing
