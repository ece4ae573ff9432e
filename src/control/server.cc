#include "control/server.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/host_name.h"
#include "base/log.h"
#include "base/process/process.h"
#include "control/client.h"

namespace assay::control {
namespace {

constexpr PeerId kListenerEvent = 1;
constexpr PeerId kOutboxEvent = 2;
constexpr std::int64_t kSecond_ns = 1'000'000'000;
// Time for a refused peer to read the reason.
constexpr std::int64_t kClosing_ns = kSecond_ns;
constexpr std::int64_t kLoudRefusals = 100;
// Limit on unread data for a member; beyond it the member is considered lost.
constexpr std::size_t kMostQueued = std::size_t{64} << 20;

// Every rank needs a descriptor, and large jobs exceed the default limit of 1024.
void allow_descriptors(int ranks, int max_unauthenticated) {
  rlimit limit{};
  const auto wanted = static_cast<rlim_t>(ranks) + static_cast<rlim_t>(max_unauthenticated) + 512;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

Introduction introduction_of(const ChannelOptions& options) {
  return {options.job, 0, options.ranks, base::host_name(), ::getpid(), Purpose::kJoin};
}

}  // namespace

Server::Server(const ChannelOptions& options, Listener listener, Inbox& inbox, Outbox outbox,
               base::UniqueFd epoll)
    : options_(options),
      listener_(std::move(listener)),
      inbox_(inbox),
      outbox_(std::move(outbox)),
      peers_(std::move(epoll), options.ranks),
      hub_(introduction_of(options),
           {.join_ns = to_ns(options.join_timeout), .silence_ns = to_ns(options.silence_timeout)},
           steady_ns()),
      now_ns_(steady_ns()) {}

base::Result<std::unique_ptr<Server>> Server::start(const ChannelOptions& options,
                                                    Listener listener, Inbox& inbox) {
  allow_descriptors(options.ranks, options.max_unauthenticated);
  ASSAY_TRY(Outbox outbox, Outbox::make());
  base::UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) {
    return base::fail(
        base::system_error("control channel", "cannot create an epoll instance", errno));
  }
  std::unique_ptr<Server> server(
      new Server(options, std::move(listener), inbox, std::move(outbox), std::move(epoll)));
  server->peers_.watch(server->outbox_.event_fd(), kOutboxEvent);
  server->peers_.watch(server->listener_.socket.get(), kListenerEvent);
  server->thread_ = thread_without_signals([raw = server.get()] { raw->run(); });
  return server;
}

void Server::run() {
  while (!stopping_) {
    // Delivered without holding the lock: a callback may call members().
    for (const Message& message : run_once()) inbox_.deliver(message);
  }
  listener_.socket.reset();
  peers_.finish(std::chrono::steady_clock::now() + std::chrono::seconds(2));
}

std::vector<Message> Server::run_once() {
  read_events(sleep_ms());
  const std::lock_guard lock(mutex_);
  for (const Message& message : outbox_.take()) hub_.receive(0, message, now_ns_);
  if (now_ns_ >= next_heartbeat_ns_) {
    hub_.receive(0, progress_.message(), now_ns_);
    next_heartbeat_ns_ = now_ns_ + to_ns(options_.heartbeat);
  }
  expire_unauthenticated();
  if (!accepting_ && now_ns_ >= accept_again_ns_) watch_listener(true);
  hub_.advance(now_ns_);
  return dispatch();
}

int Server::sleep_ms() const {
  // Only this thread modifies what is read here.
  std::int64_t wake_ns = std::min(hub_.next_deadline_ns(), next_heartbeat_ns_);
  if (!accepting_) wake_ns = std::min(wake_ns, accept_again_ns_);
  for (const auto& [id, peer] : peers_.unauthenticated()) {
    wake_ns = std::min(wake_ns, peer->deadline_ns);
  }
  return base::poll_timeout_ms(SteadyTime{std::chrono::nanoseconds(wake_ns)});
}

// Reads everything available before any rank is considered silent: this process itself may have
// been stopped.
void Server::read_events(int first_wait_ms) {
  constexpr int kRounds = 64;
  std::array<epoll_event, 64> events;
  for (int round = 0; round < kRounds; ++round) {
    const int ready = ::epoll_wait(peers_.epoll_fd(), events.data(), events.size(),
                                   round == 0 ? first_wait_ms : 0);
    const std::lock_guard lock(mutex_);
    now_ns_ = steady_ns();
    for (int i = 0; i < ready; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      if (event.data.u64 == kListenerEvent) {
        accept_all();
      } else if (event.data.u64 != kOutboxEvent) {
        handle(event.data.u64, event.events);
      }
    }
    if (ready < static_cast<int>(events.size())) return;
  }
}

void Server::watch_listener(bool watch) {
  accepting_ = watch;
  epoll_event event{.events = watch ? std::uint32_t{EPOLLIN} : 0U, .data = {.u64 = kListenerEvent}};
  ::epoll_ctl(peers_.epoll_fd(), EPOLL_CTL_MOD, listener_.socket.get(), &event);
}

void Server::accept_all() {
  constexpr int kAtOnce = 64;
  for (int i = 0; i < kAtOnce && make_room(); ++i) {
    base::UniqueFd socket(
        ::accept4(listener_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        base::log_warn("rank 0 cannot accept connections", {{"reason", strerrordesc_np(errno)}});
        watch_listener(false);
        accept_again_ns_ = now_ns_ + kSecond_ns / 10;
        return;
      }
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      continue;  // a peer that gave up already
    }
    set_stream_options(socket.get());
    peers_.add(std::make_unique<Peer>(
        std::move(socket),
        ServerHandshake(options_.job, options_.secret, listener_.port, random_nonce()), now_ns_,
        to_ns(options_.authentication_timeout)));
  }
}

// If the limit of unauthenticated peers is reached, closes the oldest, unless it is younger than a
// second and may just be slow: then nobody is accepted until that has passed.
bool Server::make_room() {
  if (peers_.unauthenticated().size() < static_cast<std::size_t>(options_.max_unauthenticated))
    return true;
  if (!wait_for(listener_.socket.get(), POLLIN, SteadyTime{})) return false;  // nobody is waiting
  const auto& [id, oldest] = *peers_.unauthenticated().begin();
  if (now_ns_ - oldest->since_ns >= kSecond_ns) {
    remove(id, "too many connections");
    return true;
  }
  watch_listener(false);
  accept_again_ns_ = oldest->since_ns + kSecond_ns;
  return false;
}

void Server::handle(PeerId id, std::uint32_t events) {
  Peer* peer = peers_.find(id);
  if (peer == nullptr) return;  // removed by an event before this one
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) {
    if (peer->closing) {
      if (!peer->connection.discard()) return remove(id, "closed");
    } else {
      const bool open = peer->connection.receive();
      if (!read_frames(id, *peer)) return;
      if (!open) return remove(id, "ended unexpectedly");
    }
  }
  if ((events & EPOLLOUT) != 0) peers_.flush(id, *peer);
}

bool Server::read_frames(PeerId id, Peer& peer) {
  while (!peer.closing) {
    auto frame = peer.connection.reader().next();
    if (frame && !*frame) break;
    if (peer.rank < 0) {
      if (frame) {
        authenticate(id, peer, **frame);
      } else {
        refuse(peer, refusal_bytes(frame.error().what), frame.error().what);
      }
      continue;
    }
    const auto message = frame ? decode(**frame) : std::nullopt;
    if (!message) {
      remove(id, frame ? "sent an invalid message"
                       : fmt::format("sent an invalid message: {}", frame.error().what));
      return false;
    }
    hub_.receive(peer.rank, *message, now_ns_);
  }
  peers_.flush(id, peer);
  return true;
}

void Server::authenticate(PeerId id, Peer& peer, const Frame& frame) {
  const HandshakeResult result = peer.handshake.receive(frame);
  if (result.status == HandshakeResult::Status::kRefused)
    return refuse(peer, result.bytes, result.reason);
  if (result.status == HandshakeResult::Status::kContinue)
    return peer.connection.queue(result.bytes);
  const Introduction& who = peer.handshake.peer();
  if (const auto reason = hub_.admit(who, now_ns_)) {
    return refuse(peer, refusal_bytes(*reason), *reason);
  }
  peers_.admit(id, who.rank);
  base::log_info(who.purpose == Purpose::kJoin ? "joined" : "reports a failure",
                 {{"rank", who.rank}, {"host", who.host}, {"peer", peer.address}});
  if (!accepting_) watch_listener(true);
  peer.connection.queue(peer.handshake.welcome_bytes(hub_.join_remaining_ns(now_ns_) / 1'000'000));
}

// Sends the reason and allows some time to read it. If the peer claimed a rank, the reason is kept
// to explain why that rank is missing.
void Server::refuse(Peer& peer, const std::string& bytes, const std::string& reason, Retry retry) {
  const bool introduced = peer.handshake.introduced();
  const int rank = introduced ? peer.handshake.peer().rank : -1;
  // The first refusals are logged individually; a port scanner must not fill the disk.
  const bool loud = ++refusals_ <= kLoudRefusals;
  base::log(loud ? base::LogLevel::kWarn : base::LogLevel::kDebug, "refused to join",
            {{"peer", peer.address}, {"rank", rank}, {"reason", reason}});
  if (introduced) {
    hub_.note_refusal(rank, reason, retry == Retry::kNever ? std::optional(now_ns_) : std::nullopt);
  }
  peer.connection.queue(bytes);
  peer.connection.flush();
  peer.connection.finish_sending();
  peer.closing = true;
  peer.deadline_ns = now_ns_ + kClosing_ns;
}

void Server::remove(PeerId id, const std::string& how) {
  const int rank = peers_.remove(id);
  if (rank >= 0) hub_.lost(rank, how);
  if (!accepting_) watch_listener(true);
}

void Server::expire_unauthenticated() {
  std::vector<PeerId> expired;
  for (const auto& [id, peer] : peers_.unauthenticated()) {
    if (now_ns_ < peer->deadline_ns) continue;
    if (peer->closing) {
      expired.push_back(id);
      continue;
    }
    const std::string reason = fmt::format("did not authenticate within {}",
                                           duration_text(to_ns(options_.authentication_timeout)));
    refuse(*peer, refusal_bytes(reason, true), reason, Retry::kPossible);
  }
  for (const PeerId id : expired) remove(id, "closed");
}

// Sends the hub's messages; returns those for rank 0 itself.
std::vector<Message> Server::dispatch() {
  std::vector<Message> own;
  // Removing a peer that does not read may produce further messages.
  for (auto outgoing = hub_.take_outgoing(); !outgoing.empty(); outgoing = hub_.take_outgoing()) {
    std::vector<PeerId> touched;
    for (OutgoingMessage& one : outgoing) {
      if (one.rank == 0) {
        own.push_back(std::move(one.message));
        continue;
      }
      const PeerId id = peers_.of_rank(one.rank);
      Peer* peer = peers_.find(id);
      if (peer == nullptr) continue;
      peer->connection.queue(encode(one.message));
      touched.push_back(id);
    }
    for (const PeerId id : touched) {
      Peer* peer = peers_.find(id);
      if (peer == nullptr) continue;
      peers_.flush(id, *peer);
      if (peer->connection.queued() > kMostQueued) remove(id, "does not read its replies");
    }
  }
  return own;
}

std::vector<Member> Server::members() const {
  const std::lock_guard lock(mutex_);
  return hub_.members(steady_ns());
}

void Server::stop() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  outbox_.wake();
  thread_.join();
}

}  // namespace assay::control
