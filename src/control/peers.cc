#include "control/peers.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>

#include "base/process/process.h"

namespace assay::control {

Peer::Peer(base::UniqueFd socket, const ServerHandshake& first, std::int64_t now_ns,
           std::int64_t time_to_prove_ns)
    : connection(std::move(socket), kMaxStrangerPayload),
      handshake(first),
      address(peer_text(connection.fd())),
      since_ns(now_ns),
      deadline_ns(now_ns + time_to_prove_ns) {}

void Peers::watch(int fd, PeerId id) const {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = id}};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
}

void Peers::add(std::unique_ptr<Peer> peer) {
  const PeerId id = ++last_id_;
  watch(peer->connection.fd(), id);
  unauthenticated_.emplace(id, peer.get());
  peers_.emplace(id, std::move(peer));
}

Peer* Peers::find(PeerId id) {
  const auto found = peers_.find(id);
  return found == peers_.end() ? nullptr : found->second.get();
}

void Peers::admit(PeerId id, int rank) {
  unauthenticated_.erase(id);
  members_[static_cast<std::size_t>(rank)] = id;
  Peer& peer = *peers_.at(id);
  peer.rank = rank;
  peer.connection.reader().set_max_payload(kMaxPayload);
}

int Peers::remove(PeerId id) {
  const auto found = peers_.find(id);
  if (found == peers_.end()) return -1;
  const int rank = found->second->rank;
  if (rank >= 0) members_[static_cast<std::size_t>(rank)] = 0;
  unauthenticated_.erase(id);
  peers_.erase(found);
  return rank;
}

void Peers::flush(PeerId id, Peer& peer) {
  // A broken connection is detected when it is read, so that its last messages are processed first.
  if (!peer.connection.flush()) return;
  const bool watch = peer.connection.queued() > 0;
  if (watch == peer.watches_write) return;
  peer.watches_write = watch;
  epoll_event event{.events = EPOLLIN | (watch ? std::uint32_t{EPOLLOUT} : 0U),
                    .data = {.u64 = id}};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, peer.connection.fd(), &event);
}

void Peers::finish(SteadyTime limit) {
  while (!unauthenticated_.empty()) remove(unauthenticated_.begin()->first);
  for (auto& [id, peer] : peers_) {
    flush(id, *peer);
    if (peer->connection.queued() == 0) peer->connection.finish_sending();
  }
  std::array<epoll_event, 64> events;
  while (!peers_.empty() && std::chrono::steady_clock::now() < limit) {
    const int ready =
        ::epoll_wait(epoll_.get(), events.data(), events.size(), base::poll_timeout_ms(limit));
    for (int i = 0; i < ready; ++i) {
      const PeerId id = events[static_cast<std::size_t>(i)].data.u64;
      Peer* peer = find(id);
      if (peer == nullptr) continue;
      if (!peer->connection.flush() || !peer->connection.discard()) {
        remove(id);
      } else if (peer->connection.queued() == 0) {
        peer->connection.finish_sending();
      }
    }
  }
  peers_.clear();
}

}  // namespace assay::control
