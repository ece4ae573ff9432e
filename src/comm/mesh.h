// Mesh: this process's connections to all other ranks, and the calls of all groups in flight on
// them. Issuing a call queues its messages and returns; messages are moved by the thread that waits
// for a call or, while none waits, by the mesh's own thread, so calls proceed while the caller
// computes. Messages that arrive before their call is issued here are kept.
//
// Ranks are numbered as in the whole job; ProcessRank (processes.cc) translates the numbers of
// groups.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "comm/mesh_group.h"
#include "comm/peer_link.h"

namespace assay::comm {

class Mesh : private Receiver {
 public:
  // One socket per rank, in order; the entry of this rank is not valid.
  static base::Result<std::shared_ptr<Mesh>> create(int rank, std::vector<base::UniqueFd> sockets,
                                                    std::chrono::milliseconds timeout);
  // Writes what is still queued, for a bounded time.
  ~Mesh() override;
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  // Messages for a group that does not exist here yet are kept for it. `parent` is the group it was
  // split from; the first group is its own parent.
  void add_group(std::uint64_t id, std::uint64_t parent, const std::vector<int>& members);
  void leave(std::uint64_t id);
  void abort(std::uint64_t id, const base::Error& why);

  base::Result<std::shared_ptr<Operation>> issue(std::uint64_t id, const Call& call,
                                                 Transfers transfers);
  base::Result<void> wait(const std::shared_ptr<Operation>& operation);

  [[nodiscard]] std::int64_t next_group_id();
  void set_next_group_id(std::int64_t id);

 private:
  Mesh(int rank, std::vector<base::UniqueFd> sockets, std::chrono::milliseconds timeout);
  base::Result<void> watch();

  // Receiver.
  base::Result<ReceiveBuffer> begin(int peer, const Message& message) override;
  void end(int peer, const Message& message) override;
  void sent(int peer, const std::shared_ptr<Operation>& operation) override;

  ReceiveBuffer begin_data(MeshGroup& group, int peer, const Message& message);
  void begin_ready(MeshGroup& group, int peer, const Message& message);
  void begin_leave(MeshGroup& group, int peer);
  void expect(MeshGroup& group, const std::shared_ptr<Operation>& operation, std::size_t segment);
  void offer(MeshGroup& group, const std::shared_ptr<Operation>& operation, std::size_t segment);
  void complete_one(MeshGroup& group, const std::shared_ptr<Operation>& operation);

  void fail(MeshGroup& group, const base::Error& why, bool notify_peers);
  void cancel(MeshGroup& group);
  void send_failure_reason(const MeshGroup& group);
  void peer_lost(int peer, const std::string& what);
  void disagree(MeshGroup& group, int peer, const Message& theirs, const Call& ours);

  void run();  // the mesh's own thread
  void poll(int timeout_ms, std::unique_lock<std::mutex>& lock);
  void handle(int peer, std::uint32_t events);
  void flush_queued();
  void set_polled_by_thread(bool to_thread);
  void fail_timed_out(const Operation& operation);
  void wake_waiting_thread();
  [[nodiscard]] PeerLink& link(int peer) { return links_[static_cast<std::size_t>(peer)]; }
  [[nodiscard]] std::string name(int rank) const;

  const int rank_;
  const std::chrono::milliseconds timeout_;
  base::UniqueFd sockets_epoll_;  // all sockets, and wake_
  base::UniqueFd thread_epoll_;   // stop_; also sockets_epoll_ while the thread handles it
  base::UniqueFd wake_;
  base::UniqueFd stop_;

  std::mutex mutex_;  // guards everything below
  std::condition_variable changed_;
  std::vector<PeerLink> links_;         // by rank
  std::vector<bool> watches_writable_;  // by rank: epoll reports when the socket is writable
  std::vector<bool> lost_;              // by rank
  std::vector<std::string> reasons_;    // by rank: the text of a kAbort that is being read
  std::map<std::uint64_t, MeshGroup> groups_;
  std::set<std::uint64_t> closed_;  // groups that this rank has left
  std::int64_t next_group_id_ = 1;
  std::size_t early_bytes_ = 0;
  bool failed_ = false;            // a group has failed
  bool polled_by_caller_ = false;  // a thread that waits for a call is handling the sockets

  std::thread thread_;
};

}  // namespace assay::comm
