// Peers: the connections of rank 0's server, from members and from unauthenticated peers (those
// that have not authenticated), with their epoll registrations. Closing a connection also removes
// it from epoll.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/unique_fd.h"
#include "control/connection.h"
#include "control/handshake.h"
#include "control/socket.h"

namespace assay::control {

// Unlike descriptors, ids are never reused: an event that was pending when a connection was closed
// must not reach the next one. 0 means none; 1 to 9 are for other descriptors.
using PeerId = std::uint64_t;

struct Peer {
  Peer(base::UniqueFd socket, const ServerHandshake& first, std::int64_t now_ns,
       std::int64_t time_to_prove_ns);

  Connection connection;
  ServerHandshake handshake;
  std::string address;   // for messages
  int rank = -1;         // -1: unauthenticated
  bool closing = false;  // refused; stays open until it has had time to read why
  bool watches_write = false;
  std::int64_t since_ns;
  std::int64_t deadline_ns;  // for unauthenticated peers
};

class Peers {
 public:
  Peers(base::UniqueFd epoll, int ranks)
      : epoll_(std::move(epoll)), members_(static_cast<std::size_t>(ranks), 0) {}

  [[nodiscard]] int epoll_fd() const { return epoll_.get(); }
  // Watches another descriptor for reading.
  void watch(int fd, PeerId id) const;

  void add(std::unique_ptr<Peer> peer);
  // Null if the connection is gone.
  [[nodiscard]] Peer* find(PeerId id);
  [[nodiscard]] PeerId of_rank(int rank) const { return members_[static_cast<std::size_t>(rank)]; }
  // Turns an unauthenticated peer into a member.
  void admit(PeerId id, int rank);
  // Closes the connection and returns its rank, or -1.
  int remove(PeerId id);
  // Sends what the socket accepts, and watches for writability if something is left.
  void flush(PeerId id, Peer& peer);

  // Oldest first.
  [[nodiscard]] const std::map<PeerId, Peer*>& unauthenticated() const { return unauthenticated_; }

  // Closes all connections: unauthenticated ones at once, members when everything queued has been
  // sent and they have closed too, or at the limit. Closing a socket with unread input would
  // discard what is still on its way to the peer.
  void finish(SteadyTime limit);

 private:
  base::UniqueFd epoll_;
  PeerId last_id_ = 9;
  std::unordered_map<PeerId, std::unique_ptr<Peer>> peers_;
  std::map<PeerId, Peer*> unauthenticated_;
  std::vector<PeerId> members_;  // by rank
};

}  // namespace assay::control
