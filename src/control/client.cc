#include "control/client.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/host_name.h"
#include "base/process/process.h"
#include "control/socket.h"

namespace assay::control {
namespace {

using Clock = std::chrono::steady_clock;

// Host names may become known late when containers start together, but a misspelt one should not
// cost a minute.
constexpr std::chrono::seconds kUnknownHostTimeout{10};

struct Attempt {
  enum class Status { kAdmitted, kRefused, kTryAgain };
  Status status = Status::kTryAgain;
  std::string reason;
  Milliseconds join_time_left{0};
};

// Performs the handshake on a new connection, until the deadline.
Attempt perform_handshake(Connection& connection, const Introduction& self, const Secret& secret,
                          SteadyTime deadline) {
  ClientHandshake handshake(self, secret, random_nonce());
  connection.queue(handshake.hello_bytes());
  const auto again = [](std::string reason) {
    return Attempt{Attempt::Status::kTryAgain, std::move(reason), {}};
  };
  bool open = true;
  while (true) {
    const bool sent = connection.flush();
    auto frame = connection.reader().next();
    if (!frame) {
      return {Attempt::Status::kRefused, "what listens there is not rank 0 of an assay job", {}};
    }
    if (*frame) {
      HandshakeResult result = handshake.receive(**frame);
      if (result.status == HandshakeResult::Status::kRefused) {
        return {Attempt::Status::kRefused, std::move(result.reason), {}};
      }
      if (result.status == HandshakeResult::Status::kTryAgain)
        return again(std::move(result.reason));
      if (result.status == HandshakeResult::Status::kAuthenticated) {
        return {Attempt::Status::kAdmitted, {}, Milliseconds(handshake.remaining_ms())};
      }
      connection.queue(result.bytes);
      continue;
    }
    // Messages received before a connection broke may explain why.
    if (!open || !sent) return again("it closed the connection");
    if (!wait_for(connection.fd(), connection.queued() > 0 ? POLLIN | POLLOUT : POLLIN, deadline)) {
      return again("it accepted the connection but did not answer");
    }
    open = connection.receive();
  }
}

}  // namespace

base::Result<Admission> enter_job(const ChannelOptions& options, Purpose purpose) {
  const Introduction self{options.job,       options.rank, options.ranks,
                          base::host_name(), ::getpid(),   purpose};
  const SteadyTime start = Clock::now();
  const SteadyTime deadline = start + options.join_timeout;
  const std::string where = fmt::format("rank {} of {}", options.rank, options.ranks);
  const std::string address = to_text(options.rendezvous);
  auto pause = Milliseconds(1);
  while (true) {
    std::string reason;
    std::string hint = "check that rank 0 is running and that this host may connect to that port";
    SteadyTime give_up = deadline;
    auto socket = connect_once(options.rendezvous, deadline);
    if (socket) {
      auto connection = std::make_unique<Connection>(*std::move(socket), kMaxStrangerPayload);
      Attempt attempt = perform_handshake(*connection, self, options.secret, deadline);
      if (attempt.status == Attempt::Status::kAdmitted) {
        connection->reader().set_max_payload(kMaxPayload);
        return Admission{std::move(connection), attempt.join_time_left};
      }
      if (attempt.status == Attempt::Status::kRefused) {
        return base::fail(base::failed_error(
            where, fmt::format("refused by rank 0 at {}: {}", address, attempt.reason)));
      }
      reason = attempt.reason;
    } else {
      reason = socket.error().what;
      if (socket.error().code == base::ExitCode::kUsage) {
        give_up = std::min(deadline, start + kUnknownHostTimeout);
        hint = "set ASSAY_RENDEZVOUS=HOST:PORT with an address that all ranks can reach";
      }
    }
    const SteadyTime now = Clock::now();
    if (now >= give_up) {
      return base::fail(base::failed_error(
          where,
          fmt::format("no connection to rank 0 at {} after {:.3g} s: {}", address,
                      std::chrono::duration<double>(now - start).count(), reason),
          std::move(hint)));
    }
    std::this_thread::sleep_for(std::min<Clock::duration>(pause, give_up - now));
    pause = std::min(pause * 2, Milliseconds(100));
  }
}

std::thread thread_without_signals(std::function<void()> body) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(body));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

Client::Client(const ChannelOptions& options, std::unique_ptr<Connection> connection, Inbox& inbox,
               Outbox outbox)
    : inbox_(inbox),
      connection_(std::move(connection)),
      outbox_(std::move(outbox)),
      heartbeat_ns_(to_ns(options.heartbeat)),
      silence_ns_(to_ns(options.silence_timeout)),
      last_received_ns_(steady_ns()),
      local_address_(local_host(connection_->fd())) {}

base::Result<std::unique_ptr<Client>> Client::start(const ChannelOptions& options,
                                                    std::unique_ptr<Connection> connection,
                                                    Inbox& inbox) {
  ASSAY_TRY(Outbox outbox, Outbox::make());
  std::unique_ptr<Client> client(
      new Client(options, std::move(connection), inbox, std::move(outbox)));
  client->thread_ = thread_without_signals([raw = client.get()] { raw->run(); });
  return client;
}

void Client::run() {
  // Messages that arrived right after the welcome are already in the reader.
  bool open = deliver_all();
  while (open && !stopping_) open = run_once(steady_ns());
  if (open) {
    finish();
  } else if (!inbox_.rank_0_left()) {
    inbox_.fail({0, base::failed_error("rank 0", "ended unexpectedly", "see its log")});
  }
  connection_.reset();  // at once: rank 0 may be waiting for it
}

bool Client::run_once(std::int64_t now_ns) {
  if (now_ns >= next_heartbeat_ns_) {
    connection_->queue(encode(progress_.message()));
    next_heartbeat_ns_ = now_ns + heartbeat_ns_;
  }
  if (!connection_->flush()) return connection_->receive() && deliver_all();
  const std::int64_t wake_ns = std::min(next_heartbeat_ns_, last_received_ns_ + silence_ns_);
  const SteadyTime wake{std::chrono::nanoseconds(wake_ns)};
  const short events = connection_->queued() > 0 ? POLLIN | POLLOUT : POLLIN;
  std::array<pollfd, 2> fds{pollfd{connection_->fd(), events, 0},
                            pollfd{outbox_.event_fd(), POLLIN, 0}};
  ::poll(fds.data(), fds.size(), base::poll_timeout_ms(wake));
  for (const Message& message : outbox_.take()) connection_->queue(encode(message));
  if ((fds[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
    last_received_ns_ = steady_ns();
    const bool open = connection_->receive();
    return deliver_all() && open;
  }
  // Checked only when there is nothing to read: a process that was itself stopped must not blame
  // others.
  if (steady_ns() - last_received_ns_ >= silence_ns_) {
    inbox_.fail(
        {0,
         base::failed_error(
             "rank 0",
             fmt::format("no heartbeat for {:.3g} s: its process is stopped or the network is down",
                         static_cast<double>(silence_ns_) / 1e9))});
    return false;
  }
  return true;
}

bool Client::deliver_all() {
  while (true) {
    auto frame = connection_->reader().next();
    if (!frame) {
      inbox_.fail({0, base::failed_error("rank 0", frame.error().what)});
      return false;
    }
    if (!*frame) return true;
    if (const auto message = decode(**frame)) inbox_.deliver(*message);
  }
}

// Sends what is queued, and reads until rank 0 closes: closing a socket with unread input would
// discard what is still on its way to rank 0.
void Client::finish() {
  const SteadyTime limit = Clock::now() + std::chrono::seconds(2);
  for (const Message& message : outbox_.take()) connection_->queue(encode(message));
  while (connection_->flush() && connection_->queued() > 0) {
    if (!wait_for(connection_->fd(), POLLOUT, limit)) return;
  }
  connection_->finish_sending();
  while (Clock::now() < limit && wait_for(connection_->fd(), POLLIN, limit) &&
         connection_->discard()) {
  }
}

void Client::stop() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  outbox_.wake();
  thread_.join();
}

}  // namespace assay::control
