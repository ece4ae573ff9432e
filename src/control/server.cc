#include "control/server.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/log.h"
#include "control/client.h"
#include "control/host_name.h"

namespace assay::control {
namespace {

constexpr std::uint64_t kListenerEvent = 0;
constexpr std::uint64_t kOutboxEvent = 1;
constexpr std::int64_t kSecond_ns = 1'000'000'000;
// Time for a refused peer to read why.
constexpr std::int64_t kClosing_ns = kSecond_ns;
// What a member may leave unread before it is given up.
constexpr std::size_t kMostQueued = std::size_t{64} << 20;

// Every rank is a descriptor, and the default of 1024 is less than a large job has.
void allow_descriptors(int ranks, int strangers) {
  rlimit limit{};
  const auto wanted = static_cast<rlim_t>(ranks) + static_cast<rlim_t>(strangers) + 512;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

Introduction introduction_of(const ChannelOptions& options) {
  return {options.job, 0, options.ranks, host_name(), ::getpid(), Purpose::kJoin};
}

}  // namespace

Server::Peer::Peer(base::UniqueFd socket, const Server& server)
    : connection(std::move(socket), kMaxStrangerPayload),
      handshake(server.options_.job, server.options_.secret, server.listener_.port,
                random_digest()),
      address(peer_text(connection.fd())),
      since_ns(steady_ns()),
      deadline_ns(since_ns + to_ns(server.options_.stranger_timeout)) {}

Server::Server(const ChannelOptions& options, Listener listener, Inbox& inbox, Outbox outbox,
               base::UniqueFd epoll)
    : options_(options),
      listener_(std::move(listener)),
      inbox_(inbox),
      outbox_(std::move(outbox)),
      epoll_(std::move(epoll)),
      hub_(introduction_of(options),
           {.join_ns = to_ns(options.join_timeout), .silence_ns = to_ns(options.silence_timeout)},
           steady_ns()),
      members_(static_cast<std::size_t>(options.ranks), 0) {}

base::Result<std::unique_ptr<Server>> Server::start(const ChannelOptions& options,
                                                    Listener listener, Inbox& inbox) {
  allow_descriptors(options.ranks, options.strangers);
  ASSAY_TRY(Outbox outbox, Outbox::make());
  base::UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) {
    return base::fail(base::system_error("control channel", "cannot make an epoll", errno));
  }
  std::unique_ptr<Server> server(
      new Server(options, std::move(listener), inbox, std::move(outbox), std::move(epoll)));
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kOutboxEvent}};
  ::epoll_ctl(server->epoll_.get(), EPOLL_CTL_ADD, server->outbox_.event_fd(), &event);
  event = {.events = EPOLLIN, .data = {.u64 = kListenerEvent}};
  ::epoll_ctl(server->epoll_.get(), EPOLL_CTL_ADD, server->listener_.socket.get(), &event);
  server->thread_ = quiet_thread([raw = server.get()] { raw->run(); });
  return server;
}

void Server::run() {
  std::array<epoll_event, 64> events;
  while (!stopping_) {
    const int ready = ::epoll_wait(epoll_.get(), events.data(), events.size(), sleep_ms());
    std::vector<Message> own;
    {
      const std::lock_guard lock(mutex_);
      const std::int64_t now_ns = steady_ns();
      for (int i = 0; i < ready; ++i) {
        const epoll_event& event = events[static_cast<std::size_t>(i)];
        if (event.data.u64 == kListenerEvent) {
          accept_all(now_ns);
        } else if (event.data.u64 != kOutboxEvent) {
          handle(event.data.u64, event.events, now_ns);
        }
      }
      for (const Message& message : outbox_.take()) hub_.receive(0, message, now_ns);
      if (now_ns >= next_heartbeat_ns_) {
        hub_.receive(0, progress_.message(), now_ns);
        next_heartbeat_ns_ = now_ns + to_ns(options_.heartbeat);
      }
      expire_strangers(now_ns);
      if (!accepting_ && now_ns >= accept_again_ns_) watch_listener(true);
      // With more events than fit, the rest must be read before anybody is called silent.
      if (ready < static_cast<int>(events.size())) hub_.advance(now_ns);
      own = dispatch();
    }
    // Without the lock: a callback may ask for the members.
    for (const Message& message : own) inbox_.deliver(message);
  }
  finish();
}

int Server::sleep_ms() const {
  // Only this thread changes what is read here.
  std::int64_t wake_ns = std::min(hub_.next_deadline_ns(), next_heartbeat_ns_);
  if (!accepting_) wake_ns = std::min(wake_ns, accept_again_ns_);
  for (const auto& [id, peer] : strangers_) wake_ns = std::min(wake_ns, peer->deadline_ns);
  return poll_milliseconds(SteadyTime{std::chrono::nanoseconds(wake_ns)});
}

void Server::watch_listener(bool watch) {
  accepting_ = watch;
  epoll_event event{.events = watch ? std::uint32_t{EPOLLIN} : 0U, .data = {.u64 = kListenerEvent}};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listener_.socket.get(), &event);
}

void Server::accept_all(std::int64_t now_ns) {
  for (int i = 0; i < 64; ++i) {
    if (!make_room(now_ns)) return;
    base::UniqueFd socket(
        ::accept4(listener_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        base::log_warn("rank 0 cannot accept connections", {{"reason", strerrordesc_np(errno)}});
        watch_listener(false);
        accept_again_ns_ = now_ns + kSecond_ns / 10;
        return;
      }
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      continue;  // a peer that gave up already
    }
    set_stream_options(socket.get());
    add_peer(std::move(socket));
  }
}

// With as many strangers as are allowed, the oldest goes, unless it may just be slow: then nobody
// is accepted until it has had a second.
bool Server::make_room(std::int64_t now_ns) {
  if (strangers_.size() < static_cast<std::size_t>(options_.strangers)) return true;
  const auto& [id, oldest] = *strangers_.begin();
  if (now_ns - oldest->since_ns >= kSecond_ns) {
    remove(id, "too many connections");
    return true;
  }
  watch_listener(false);
  accept_again_ns_ = oldest->since_ns + kSecond_ns;
  return false;
}

void Server::add_peer(base::UniqueFd socket) {
  const PeerId id = ++last_id_;
  auto peer = std::make_unique<Peer>(std::move(socket), *this);
  epoll_event event{.events = EPOLLIN, .data = {.u64 = id}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, peer->connection.fd(), &event) != 0) return;
  strangers_.emplace(id, peer.get());
  peers_.emplace(id, std::move(peer));
}

void Server::handle(PeerId id, std::uint32_t events, std::int64_t now_ns) {
  const auto found = peers_.find(id);
  if (found == peers_.end()) return;  // removed by an event before this one
  Peer& peer = *found->second;
  if ((events & EPOLLIN) != 0 || (events & (EPOLLHUP | EPOLLERR)) != 0) {
    if (peer.closing) {
      if (!peer.connection.discard()) return remove(id, "closed");
    } else {
      const bool open = peer.connection.receive();
      if (!read_frames(id, peer, now_ns)) return;
      if (!open) return remove(id, "ended unexpectedly");
    }
  }
  if ((events & EPOLLOUT) != 0) flush(id, peer);
}

bool Server::read_frames(PeerId id, Peer& peer, std::int64_t now_ns) {
  while (!peer.closing) {
    auto frame = peer.connection.reader().next();
    if (!frame) {
      if (peer.rank >= 0) {
        remove(id, fmt::format("sent what cannot be read: {}", frame.error().what));
        return false;
      }
      refuse(peer, refusal_bytes(frame.error().what), frame.error().what, now_ns);
      break;
    }
    if (!*frame) return true;
    if (peer.rank < 0) {
      if (!meet(id, peer, **frame, now_ns)) return false;
      continue;
    }
    const auto message = decode(**frame);
    if (!message) {
      remove(id, "sent what cannot be read");
      return false;
    }
    hub_.receive(peer.rank, *message, now_ns);
  }
  flush(id, peer);
  return peers_.contains(id);
}

bool Server::meet(PeerId id, Peer& peer, const Frame& frame, std::int64_t now_ns) {
  const HandshakeStep step = peer.handshake.receive(frame);
  if (step.outcome == HandshakeStep::Outcome::kRefused) {
    refuse(peer, step.bytes, step.reason, now_ns);
    return true;
  }
  if (step.outcome == HandshakeStep::Outcome::kContinue) {
    peer.connection.queue(step.bytes);
    flush(id, peer);
    return peers_.contains(id);
  }
  const Introduction& who = peer.handshake.peer();
  if (const auto reason = hub_.admit(who, now_ns)) {
    refuse(peer, refusal_bytes(*reason), *reason, now_ns);
    return true;
  }
  peer.rank = who.rank;
  peer.connection.reader().set_max_payload(kMaxPayload);
  strangers_.erase(id);
  if (!accepting_) watch_listener(true);
  members_[static_cast<std::size_t>(who.rank)] = id;
  peer.connection.queue(peer.handshake.welcome_bytes(hub_.join_remaining_ns(now_ns) / 1'000'000));
  flush(id, peer);
  return peers_.contains(id);
}

// The peer gets the line and a moment to read it. Its rank, if it named one, explains later why
// that rank has not come.
void Server::refuse(Peer& peer, const std::string& bytes, const std::string& reason,
                    std::int64_t now_ns) {
  const bool introduced = peer.handshake.introduced();
  const int rank = introduced ? peer.handshake.peer().rank : -1;
  base::log_warn("refused to join", {{"peer", peer.address}, {"rank", rank}, {"reason", reason}});
  if (introduced) hub_.note_refusal(rank, reason);
  peer.connection.queue(bytes);
  peer.connection.flush();
  peer.connection.finish_sending();
  peer.closing = true;
  peer.deadline_ns = std::min(peer.deadline_ns, now_ns + kClosing_ns);
}

void Server::remove(PeerId id, const std::string& how) {
  const auto found = peers_.find(id);
  if (found == peers_.end()) return;
  const int rank = found->second->rank;
  strangers_.erase(id);
  peers_.erase(found);  // closing the socket also takes it out of the epoll
  if (rank < 0) {
    if (!accepting_) watch_listener(true);
    return;
  }
  members_[static_cast<std::size_t>(rank)] = 0;
  hub_.lost(rank, how);
}

void Server::flush(PeerId id, Peer& peer) {
  // A broken connection is noticed when it is read: what it still has to say comes first.
  if (!peer.connection.flush()) return;
  if (peer.connection.queued() > kMostQueued) return remove(id, "does not read what it asked for");
  const bool watch = peer.connection.queued() > 0;
  if (watch == peer.watches_write) return;
  peer.watches_write = watch;
  epoll_event event{.events = EPOLLIN | (watch ? std::uint32_t{EPOLLOUT} : 0U),
                    .data = {.u64 = id}};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, peer.connection.fd(), &event);
}

void Server::expire_strangers(std::int64_t now_ns) {
  std::vector<PeerId> expired;
  for (const auto& [id, peer] : strangers_) {
    if (now_ns < peer->deadline_ns) continue;
    if (peer->closing) {
      expired.push_back(id);
      continue;
    }
    const std::string reason =
        fmt::format("did not prove who it is within {:.3g} s",
                    std::chrono::duration<double>(options_.stranger_timeout).count());
    peer->deadline_ns = now_ns + kClosing_ns;
    refuse(*peer, refusal_bytes(reason), reason, now_ns);
  }
  for (const PeerId id : expired) remove(id, "closed");
}

std::vector<Message> Server::dispatch() {
  std::vector<Message> own;
  // Removing a peer that cannot be written to may give the hub more to say.
  for (auto outgoing = hub_.take_outgoing(); !outgoing.empty(); outgoing = hub_.take_outgoing()) {
    std::vector<PeerId> touched;
    for (Hub::Outgoing& one : outgoing) {
      if (one.rank == 0) {
        own.push_back(std::move(one.message));
        continue;
      }
      const auto peer = peers_.find(members_[static_cast<std::size_t>(one.rank)]);
      if (peer == peers_.end()) continue;
      peer->second->connection.queue(encode(one.message));
      touched.push_back(peer->first);
    }
    for (const PeerId id : touched) {
      if (const auto peer = peers_.find(id); peer != peers_.end()) flush(id, *peer->second);
    }
  }
  return own;
}

std::vector<Member> Server::members() const {
  const std::lock_guard lock(mutex_);
  return hub_.members(steady_ns());
}

// What is queued goes out, and what comes is read until the members close: closing with something
// unread would destroy what is on its way to them.
void Server::finish() {
  const SteadyTime limit = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  listener_.socket.reset();
  for (const auto& [id, stranger] : strangers_) peers_.erase(id);
  strangers_.clear();
  std::array<epoll_event, 64> events;
  for (auto& [id, peer] : peers_) {
    flush(id, *peer);
    if (peer->connection.queued() == 0) peer->connection.finish_sending();
  }
  while (!peers_.empty() && std::chrono::steady_clock::now() < limit) {
    const int ready =
        ::epoll_wait(epoll_.get(), events.data(), events.size(), poll_milliseconds(limit));
    for (int i = 0; i < ready; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      const auto peer = peers_.find(event.data.u64);
      if (peer == peers_.end()) {
        if (event.data.u64 == kOutboxEvent) outbox_.take();
        continue;
      }
      Connection& connection = peer->second->connection;
      if (!connection.flush() || !connection.discard()) {
        peers_.erase(peer);
      } else if (connection.queued() == 0) {
        connection.finish_sending();
      }
    }
  }
  peers_.clear();
}

void Server::stop() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  outbox_.wake();
  thread_.join();
}

}  // namespace assay::control
