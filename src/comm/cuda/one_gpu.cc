#include "comm/cuda/one_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <tuple>

#include "base/error.h"
#include "comm/cuda/copy_kernel.h"
#include "comm/cuda/events.h"
#include "comm/transfers.h"

namespace assay::comm {
namespace {

using Streams = std::vector<std::shared_ptr<const CommunicationStream>>;

// The state shared by the ranks of a group. The last rank to issue a call queues the copies of all
// ranks: each copy waits for the work that its sender and its receiver had queued before the call.
class OneGpuGroup {
 public:
  OneGpuGroup(std::vector<int> names, Streams streams, int device, const OneGpuOptions& options)
      : names_(std::move(names)),
        streams_(std::move(streams)),
        device_(device),
        options_(options),
        issued_(names_.size()) {}
  ~OneGpuGroup() {
    for (const auto& [key, shared] : calls_) give_back_events(shared);
  }
  OneGpuGroup(const OneGpuGroup&) = delete;
  OneGpuGroup& operator=(const OneGpuGroup&) = delete;

  [[nodiscard]] int ranks() const { return static_cast<int>(names_.size()); }

  base::Result<std::uint64_t> post(int rank, const Call& call, Transfers transfers,
                                   cudaStream_t from) {
    const std::lock_guard lock(mutex_);
    if (failure_) return base::fail(*failure_);
    const Key key = next_key(rank, call);
    GroupCall& shared = calls_[key];
    shared.participants = std::get<0>(key) >= 0 ? 2 : names_.size();
    PostedCall& post = shared.posts[rank];
    post = {call, std::move(transfers), from};
    // If this failed after the call was half posted, the others would wait until the timeout.
    ASSAY_TRY_VOID(or_fail(prepare(post)));
    if (shared.posts.size() == shared.participants) {
      ASSAY_TRY_VOID(or_fail(queue(shared)));
      shared.queued = true;
      changed_.notify_all();
    }
    const std::uint64_t ticket = ++last_ticket_;
    tickets_[ticket] = key;
    return ticket;
  }

  base::Result<void> finish(int rank, std::uint64_t ticket) {
    std::unique_lock lock(mutex_);
    const auto found = tickets_.find(ticket);
    if (found == tickets_.end()) {
      return base::fail(base::usage_error(name(rank), "waits for a call that is not in flight"));
    }
    const Key key = found->second;
    tickets_.erase(found);
    GroupCall& shared = calls_.at(key);
    const bool in_time = changed_.wait_for(lock, options_.timeout,
                                           [&] { return shared.queued || failure_.has_value(); });
    if (!in_time) {
      fail(base::failed_error(
          name(rank), fmt::format("no other rank joined {} within {} ms",
                                  to_text(shared.posts.at(rank).call), options_.timeout.count())));
    }
    if (!shared.queued) return base::fail(*failure_);
    ASSAY_TRY_VOID(or_fail(wait_for_copies(rank, shared)));
    if (++shared.finished == shared.participants) {
      give_back_events(shared);
      calls_.erase(key);
    }
    return {};
  }

  void abort(const base::Error& why) {
    std::vector<std::shared_ptr<OneGpuGroup>> below;
    {
      const std::lock_guard lock(mutex_);
      fail(why);
      for (const auto& [id, group] : subgroups_) below.push_back(group);
    }
    for (const auto& group : below) group->abort(why);
  }

  // The ranks that chose the same color, ordered by key; every rank calls it.
  base::Result<std::vector<int>> members_of(int rank, int color, int key, std::int64_t& id) {
    std::unique_lock lock(mutex_);
    const std::int64_t split = splits_[rank]++;
    auto& chosen = choices_[split];
    chosen[rank] = {color, key};
    changed_.notify_all();
    const bool in_time = changed_.wait_for(lock, options_.timeout, [&] {
      return chosen.size() == names_.size() || failure_.has_value();
    });
    if (!in_time) fail(base::failed_error(name(rank), "not all ranks joined a split"));
    if (chosen.size() < names_.size()) return base::fail(*failure_);
    std::vector<int> members;
    for (const auto& [other, choice] : chosen) {
      if (choice.first == color) members.push_back(other);
    }
    std::ranges::stable_sort(members, {}, [&](int other) { return chosen.at(other).second; });
    id = split * ranks() + *std::ranges::min_element(members);
    return members;
  }

  std::shared_ptr<OneGpuGroup> subgroup(const std::vector<int>& members, std::int64_t id) {
    const std::lock_guard lock(mutex_);
    auto& group = subgroups_[id];
    if (!group) {
      std::vector<int> names;
      Streams streams;
      for (const int member : members) {
        names.push_back(names_[static_cast<std::size_t>(member)]);
        streams.push_back(streams_[static_cast<std::size_t>(member)]);
      }
      group =
          std::make_shared<OneGpuGroup>(std::move(names), std::move(streams), device_, options_);
      group->failure_ = failure_;
    }
    return group;
  }

 private:
  struct PostedCall {
    Call call;
    Transfers transfers;
    cudaStream_t from = nullptr;  // the caller's
    cudaEvent_t ready = nullptr;  // its buffers are ready
    cudaEvent_t done = nullptr;   // what it receives has arrived
  };
  struct GroupCall {
    std::size_t participants = 0;
    std::map<int, PostedCall> posts;  // by rank
    bool queued = false;
    std::size_t finished = 0;
  };
  // Sender, receiver and number of the call; -1, -1 for collectives.
  using Key = std::tuple<int, int, std::uint64_t>;

  Key next_key(int rank, const Call& call) {
    Key channel = {-1, -1, 0};
    if (call.kind == CommKind::kSend) channel = {rank, call.peer, 0};
    if (call.kind == CommKind::kReceive) channel = {call.peer, rank, 0};
    std::get<2>(channel) = ++issued_[static_cast<std::size_t>(rank)][channel];
    return channel;
  }

  base::Result<void> prepare(PostedCall& post) {
    ASSAY_TRY_VOID(cuda_done(cudaSetDevice(device_), "choosing the GPU"));
    ASSAY_TRY(post.ready, events_.take());
    ASSAY_TRY(post.done, events_.take());
    return cuda_done(cudaEventRecord(post.ready, post.from), "recording an event");
  }

  // Waits for the rank's own copies, and for those that read from its buffers.
  base::Result<void> wait_for_copies(int rank, const GroupCall& shared) const {
    ASSAY_TRY_VOID(cuda_done(cudaSetDevice(device_), "choosing the GPU"));
    const cudaStream_t from = shared.posts.at(rank).from;
    for (const auto& [other, post] : shared.posts) {
      const bool reads =
          other == rank || std::ranges::any_of(post.transfers.in, [&](auto& segment) {
            return segment.peer == rank && segment.bytes > 0;
          });
      if (reads) ASSAY_TRY_VOID(cuda_done(cudaStreamWaitEvent(from, post.done), "waiting"));
    }
    return {};
  }

  void give_back_events(const GroupCall& shared) {
    for (const auto& [rank, post] : shared.posts) {
      events_.give_back(post.ready);
      events_.give_back(post.done);
    }
  }

  base::Result<void> queue(GroupCall& shared) {
    ASSAY_TRY_VOID(agree(shared));
    for (auto& [rank, post] : shared.posts) {
      const cudaStream_t stream = streams_[static_cast<std::size_t>(rank)]->get();
      ASSAY_TRY_VOID(cuda_done(cudaStreamWaitEvent(stream, post.ready), "waiting"));
      const Outgoing& own = post.transfers.own_from;
      if (own.bytes > 0 && own.data != post.transfers.own_to.data) {
        ASSAY_TRY_VOID(copy(post.transfers.own_to.data, own.data, own.bytes, stream));
      }
      for (const Incoming& segment : post.transfers.in) {
        const PostedCall& sender = shared.posts.at(segment.peer);
        const auto sent = std::ranges::find(sender.transfers.out, rank, &Outgoing::peer);
        if (sent == sender.transfers.out.end() || sent->bytes != segment.bytes) {
          return base::fail(base::failed_error(
              name(segment.peer),
              fmt::format("sends a different number of bytes than {} expects in {}", name(rank),
                          to_text(post.call))));
        }
        if (segment.bytes == 0) continue;
        ASSAY_TRY_VOID(cuda_done(cudaStreamWaitEvent(stream, sender.ready), "waiting"));
        ASSAY_TRY_VOID(copy(segment.data, sent->data, segment.bytes, stream));
      }
      ASSAY_TRY_VOID(cuda_done(cudaEventRecord(post.done, stream), "recording an event"));
    }
    return {};
  }

  base::Result<void> copy(std::byte* to, const std::byte* from, std::size_t bytes,
                          cudaStream_t stream) const {
    const cudaError_t queued =
        options_.copying == Copying::kBesideKernels
            ? copy_beside_kernels(to, from, bytes, stream)
            : cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
    return cuda_done(queued, "copying between ranks");
  }

  base::Result<void> agree(const GroupCall& shared) const {
    const auto& [first, reference] = *shared.posts.begin();
    for (const auto& [rank, post] : shared.posts) {
      const bool pair = shared.participants == 2 &&
                        (post.call.kind == CommKind::kSend || post.call.kind == CommKind::kReceive);
      if (pair ? post.call.count == reference.call.count : post.call == reference.call) continue;
      return base::fail(
          base::failed_error(name(rank),
                             fmt::format("calls {} where {} calls {}", to_text(post.call),
                                         name(first), to_text(reference.call)),
                             "all ranks must run the same job"));
    }
    return {};
  }

  base::Result<void> or_fail(const base::Result<void>& done) {
    if (done) return {};
    fail(done.error());
    return base::fail(*failure_);
  }
  void fail(const base::Error& why) {
    if (!failure_) failure_ = why;
    changed_.notify_all();
  }
  [[nodiscard]] std::string name(int rank) const {
    return fmt::format("rank {}", names_[static_cast<std::size_t>(rank)]);
  }

  const std::vector<int> names_;  // for messages: ranks in the first group
  const Streams streams_;         // for each rank's copies
  const int device_;
  const OneGpuOptions options_;

  std::mutex mutex_;  // guards everything below
  std::condition_variable changed_;
  std::vector<std::map<Key, std::uint64_t>> issued_;  // by rank and channel: calls so far
  std::map<Key, GroupCall> calls_;
  std::map<std::uint64_t, Key> tickets_;
  std::uint64_t last_ticket_ = 0;
  EventPool events_;
  std::map<int, std::int64_t> splits_;                                  // by rank: so far
  std::map<std::int64_t, std::map<int, std::pair<int, int>>> choices_;  // color and key
  std::map<std::int64_t, std::shared_ptr<OneGpuGroup>> subgroups_;
  std::optional<base::Error> failure_;
};

class OneGpuRank : public Communicator {
 public:
  OneGpuRank(std::shared_ptr<OneGpuGroup> group, int rank)
      : group_(std::move(group)), rank_(rank) {}

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int ranks() const override { return group_->ranks(); }
  void abort(const base::Error& why) override { group_->abort(why); }
  base::Result<void> wait(Ticket ticket) override { return group_->finish(rank_, ticket.id); }
  // Exchanged between the threads: the group's own calls only handle device memory.
  base::Result<std::unique_ptr<Communicator>> split(int color, int key) override {
    std::int64_t id = 0;
    ASSAY_TRY(const std::vector<int> members, group_->members_of(rank_, color, key, id));
    if (color < 0) return nullptr;
    return subgroup(members, id);
  }

 protected:
  base::Result<Ticket> start(const Call& call, const void* in, void* out,
                             const AllToAllParts& parts, Stream stream) override {
    ASSAY_TRY(Transfers transfers, transfers_of(call, rank_, ranks(), in, out, parts));
    ASSAY_TRY(const std::uint64_t id, group_->post(rank_, call, std::move(transfers),
                                                   static_cast<cudaStream_t>(stream.handle)));
    return Ticket{id};
  }
  base::Result<std::unique_ptr<Communicator>> subgroup(const std::vector<int>& members,
                                                       std::int64_t id) override {
    const auto place = std::ranges::find(members, rank_) - members.begin();
    return std::make_unique<OneGpuRank>(group_->subgroup(members, id), static_cast<int>(place));
  }
  [[nodiscard]] std::int64_t next_group_id() const override { return 0; }  // split() has its own
  void set_next_group_id(std::int64_t) override {}

 private:
  std::shared_ptr<OneGpuGroup> group_;
  int rank_;
};

}  // namespace

base::Result<std::vector<std::unique_ptr<Communicator>>> make_one_gpu(
    int ranks, int device, const OneGpuOptions& options) {
  ASSAY_TRY_VOID(cuda_done(cudaSetDevice(device), "choosing the GPU"));
  std::vector<int> names(static_cast<std::size_t>(ranks));
  std::iota(names.begin(), names.end(), 0);
  Streams streams;
  for (int rank = 0; rank < ranks; ++rank) {
    ASSAY_TRY(CommunicationStream stream, CommunicationStream::make());
    streams.push_back(std::make_shared<const CommunicationStream>(std::move(stream)));
  }
  const auto group =
      std::make_shared<OneGpuGroup>(std::move(names), std::move(streams), device, options);
  std::vector<std::unique_ptr<Communicator>> list;
  for (int rank = 0; rank < ranks; ++rank) {
    list.push_back(std::make_unique<OneGpuRank>(group, rank));
  }
  return list;
}

}  // namespace assay::comm
