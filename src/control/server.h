// Server: the link of rank 0, and the thread that all other ranks and strangers talk to. It moves
// messages between sockets and the hub; what they mean is the hub's business.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "control/channel.h"
#include "control/connection.h"
#include "control/hub.h"
#include "control/link.h"
#include "control/socket.h"

namespace assay::control {

class Server final : public Link {
 public:
  // The inbox must outlive it.
  static base::Result<std::unique_ptr<Server>> start(const ChannelOptions& options,
                                                     Listener listener, Inbox& inbox);
  ~Server() override { stop(); }

  void send(Message message) override { outbox_.push(std::move(message)); }
  void set_step(std::int64_t step) override { progress_.set(step); }
  [[nodiscard]] std::vector<Member> members() const override;
  void stop() override;
  [[nodiscard]] std::string local_address() const override { return {}; }

 private:
  struct Peer {
    Peer(base::UniqueFd socket, const Server& server);

    Connection connection;
    ServerHandshake handshake;
    std::string address;
    int rank = -1;         // of a member; -1: a stranger
    bool closing = false;  // was refused, and is given time to read why
    bool watches_write = false;
    std::int64_t since_ns;
    std::int64_t deadline_ns;  // of a stranger
  };
  using PeerId = std::uint64_t;

  Server(const ChannelOptions& options, Listener listener, Inbox& inbox, Outbox outbox,
         base::UniqueFd epoll);
  void run();
  [[nodiscard]] int sleep_ms() const;
  void accept_all(std::int64_t now_ns);
  bool make_room(std::int64_t now_ns);
  void add_peer(base::UniqueFd socket);
  void watch_listener(bool watch);
  void handle(PeerId id, std::uint32_t events, std::int64_t now_ns);
  // False when the peer is gone.
  bool read_frames(PeerId id, Peer& peer, std::int64_t now_ns);
  bool meet(PeerId id, Peer& peer, const Frame& frame, std::int64_t now_ns);
  void refuse(Peer& peer, const std::string& bytes, const std::string& reason, std::int64_t now_ns);
  void remove(PeerId id, const std::string& how);
  void flush(PeerId id, Peer& peer);
  void expire_strangers(std::int64_t now_ns);
  // Sends what the hub has to say; what is for rank 0 itself is returned.
  std::vector<Message> dispatch();
  void finish();

  const ChannelOptions options_;
  Listener listener_;
  Inbox& inbox_;
  Outbox outbox_;
  base::UniqueFd epoll_;
  Progress progress_;

  mutable std::mutex mutex_;  // of the hub, which members() reads
  Hub hub_;

  std::unordered_map<PeerId, std::unique_ptr<Peer>> peers_;
  std::map<PeerId, Peer*> strangers_;  // oldest first
  std::vector<PeerId> members_;        // by rank; 0: none
  PeerId last_id_ = 1;
  bool accepting_ = true;
  std::int64_t accept_again_ns_ = 0;
  std::int64_t next_heartbeat_ns_ = 0;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace assay::control
