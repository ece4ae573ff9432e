// Peers: the connections of rank 0's server, members' and strangers', with their events. Closing
// one takes it out of the epoll by itself.
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

// Never used twice, unlike descriptors: an event that was on its way when a connection was closed
// must not reach the next one. 0 is nobody, 1 to 9 are for events of others.
using PeerId = std::uint64_t;

struct Peer {
  Peer(base::UniqueFd socket, const ServerHandshake& first, std::int64_t now_ns,
       std::int64_t time_to_prove_ns);

  Connection connection;
  ServerHandshake handshake;
  std::string address;   // for people
  int rank = -1;         // of a member; -1: a stranger
  bool closing = false;  // was refused, and is given time to read why
  bool watches_write = false;
  std::int64_t since_ns;
  std::int64_t deadline_ns;  // of a stranger
};

class Peers {
 public:
  Peers(base::UniqueFd epoll, int ranks)
      : epoll_(std::move(epoll)), members_(static_cast<std::size_t>(ranks), 0) {}

  [[nodiscard]] int epoll_fd() const { return epoll_.get(); }
  // Events of something else that is watched for reading.
  void watch(int fd, PeerId id) const;

  void add(std::unique_ptr<Peer> stranger);
  // Null if it is gone.
  [[nodiscard]] Peer* find(PeerId id);
  [[nodiscard]] PeerId of_rank(int rank) const { return members_[static_cast<std::size_t>(rank)]; }
  // The stranger has become a member.
  void admit(PeerId id, int rank);
  // Closes the connection; its rank, or -1.
  int remove(PeerId id);
  // Sends what can be sent, and watches for more room if some is left.
  void flush(PeerId id, Peer& peer);

  // Oldest first.
  [[nodiscard]] const std::map<PeerId, Peer*>& strangers() const { return strangers_; }

  // Closes all: strangers at once, members when what is queued has gone out and they have closed
  // too, or at the limit. Closing with something unread would destroy what is on its way to them.
  void finish(SteadyTime limit);

 private:
  base::UniqueFd epoll_;
  PeerId last_id_ = 9;
  std::unordered_map<PeerId, std::unique_ptr<Peer>> peers_;
  std::map<PeerId, Peer*> strangers_;
  std::vector<PeerId> members_;  // by rank
};

}  // namespace assay::control
