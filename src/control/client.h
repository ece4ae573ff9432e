// Client: the HubLink of every rank except rank 0. Connecting and the handshake happen on the
// caller's thread; then the background thread carries messages and heartbeats.
#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "control/channel.h"
#include "control/connection.h"
#include "control/handshake.h"
#include "control/hub_link.h"

namespace assay::control {

// A connection to rank 0 on which both sides have authenticated.
struct Admission {
  std::unique_ptr<Connection> connection;
  Milliseconds join_time_left{0};
};

// Retries until the join timeout: rank 0 may start later.
base::Result<Admission> enter_job(const ChannelOptions& options, Purpose purpose);

class Client final : public HubLink {
 public:
  // The inbox must outlive it.
  static base::Result<std::unique_ptr<Client>> start(const ChannelOptions& options,
                                                     std::unique_ptr<Connection> connection,
                                                     Inbox& inbox);
  ~Client() override { stop(); }

  void send(Message message) override { outbox_.push(std::move(message)); }
  void set_step(std::int64_t step) override { progress_.set(step); }
  [[nodiscard]] std::vector<Member> members() const override { return {}; }
  void stop() override;
  [[nodiscard]] std::string local_address() const override { return local_address_; }

 private:
  Client(const ChannelOptions& options, std::unique_ptr<Connection> connection, Inbox& inbox,
         Outbox outbox);
  void run();
  // False when the connection is over.
  bool run_once(std::int64_t now_ns);
  bool deliver_all();
  void finish();

  Inbox& inbox_;
  std::unique_ptr<Connection> connection_;
  Outbox outbox_;
  StepProgress progress_;
  std::int64_t heartbeat_ns_;
  std::int64_t silence_ns_;
  std::int64_t next_heartbeat_ns_ = 0;
  std::int64_t last_received_ns_;
  std::string local_address_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

// Starts a thread with all signals blocked, so that the program's own threads handle them.
std::thread thread_without_signals(std::function<void()> body);

}  // namespace assay::control
