// Server: the HubLink of rank 0, and the thread that serves all other ranks and unauthenticated
// peers. It only moves messages between sockets and the Hub, which interprets them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "control/channel.h"
#include "control/hub.h"
#include "control/hub_link.h"
#include "control/peers.h"
#include "control/socket.h"

namespace assay::control {

class Server final : public HubLink {
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
  Server(const ChannelOptions& options, Listener listener, Inbox& inbox, Outbox outbox,
         base::UniqueFd epoll);
  void run();
  // Waits for events and passes them to the hub; returns the hub's messages for rank 0 itself.
  std::vector<Message> run_once();
  [[nodiscard]] int sleep_ms() const;
  void read_events(int first_wait_ms);
  void watch_listener(bool watch);
  void accept_all();
  bool make_room();
  void handle(PeerId id, std::uint32_t events);
  // False when the peer is gone.
  bool read_frames(PeerId id, Peer& peer);
  void authenticate(PeerId id, Peer& peer, const Frame& frame);
  enum class Retry { kNever, kPossible };
  void refuse(Peer& peer, const std::string& bytes, const std::string& reason,
              Retry retry = Retry::kNever);
  void remove(PeerId id, const std::string& how);
  void expire_unauthenticated();
  std::vector<Message> dispatch();

  const ChannelOptions options_;
  Listener listener_;
  Inbox& inbox_;
  Outbox outbox_;
  StepProgress progress_;
  Peers peers_;

  mutable std::mutex mutex_;  // guards the hub, which members() reads
  Hub hub_;

  std::int64_t now_ns_;  // of this turn
  bool accepting_ = true;
  std::int64_t accept_again_ns_ = 0;
  std::int64_t next_heartbeat_ns_ = 0;
  std::int64_t refusals_ = 0;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace assay::control
