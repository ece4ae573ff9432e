#include "comm/processes.h"

#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>

#include "base/error.h"
#include "comm/listener.h"
#include "comm/local.h"
#include "comm/mesh.h"
#include "comm/transfers.h"

namespace assay::comm {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

milliseconds until(Clock::time_point deadline) {
  return std::max(std::chrono::ceil<milliseconds>(deadline - Clock::now()), milliseconds(0));
}

// Waits for one event on a socket.
bool ready(int fd, short events, Clock::time_point deadline) {
  for (;;) {
    pollfd watched = {fd, events, 0};
    const int count = ::poll(&watched, 1, static_cast<int>(until(deadline).count()));
    if (count > 0) return true;
    if (count == 0 || errno != EINTR) return false;
  }
}

base::UniqueFd connected(const sockaddr* address, socklen_t size, Clock::time_point deadline) {
  base::UniqueFd socket(
      ::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return socket;
  if (::connect(socket.get(), address, size) == 0) return socket;
  int error = errno;
  if (error == EINPROGRESS && ready(socket.get(), POLLOUT, deadline)) {
    socklen_t length = sizeof error;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  }
  if (error == 0) return socket;
  errno = error == EINPROGRESS ? ETIMEDOUT : error;
  return {};
}

base::UniqueFd connected_local(const std::string& name, Clock::time_point deadline) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());  // at most 64 bytes
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return connected(reinterpret_cast<sockaddr*>(&address), size, deadline);
}

base::UniqueFd connected_tcp(const RankEndpoint& to, Clock::time_point deadline) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  errno = EINVAL;
  if (::getaddrinfo(to.address.c_str(), to.port.c_str(), &hints, &found) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  return connected(found->ai_addr, found->ai_addrlen, deadline);
}

// Connects to a rank with a lower number and sends the hello; that rank replies later, in
// accept_all().
base::Result<base::UniqueFd> call_on(int peer, const ProcessGroupOptions& options,
                                     const std::string& own_host, KeyValue& store,
                                     Clock::time_point deadline) {
  const std::string where = fmt::format("rank {}", peer);
  ASSAY_TRY(const std::string text,
            store.get(fmt::format("{}/{}", options.prefix, peer), until(deadline)));
  const auto to = RankEndpoint::parsed(text);
  if (!to) return base::fail(base::failed_error(where, "published no usable address"));
  base::UniqueFd socket;
  if (!options.only_tcp && !to->name.empty() && to->host == own_host) {
    socket = connected_local(to->name, deadline);
  }
  if (!socket.valid()) socket = connected_tcp(*to, deadline);
  if (!socket.valid()) {
    return base::fail(base::system_error(
        where,
        fmt::format("rank {} cannot connect to {} port {}", options.rank, to->address, to->port),
        errno, "check that the machines reach each other on this address"));
  }
  set_up_tcp(socket.get());
  Hello hello;
  hello.magic = kHelloMagic;
  hello.token = to->token;
  hello.rank = options.rank;
  hello.ranks = options.ranks;
  if (::send(socket.get(), &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello) {
    return base::fail(base::system_error(where, "closed the connection at once", errno));
  }
  return socket;
}

base::Result<void> read_welcome(int peer, int rank, int fd, Clock::time_point deadline) {
  std::array<char, kWelcome.size()> answer{};
  std::size_t read = 0;
  while (read < answer.size()) {
    if (!ready(fd, POLLIN, deadline)) {
      return base::fail(base::failed_error(fmt::format("rank {}", peer),
                                           fmt::format("has not answered rank {} in time", rank)));
    }
    const ssize_t got = ::recv(fd, answer.data() + read, answer.size() - read, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) break;
    read += static_cast<std::size_t>(got);
  }
  if (read < answer.size() || answer != kWelcome) {
    return base::fail(base::failed_error(fmt::format("rank {}", peer),
                                         fmt::format("rejected rank {}", rank),
                                         "two jobs may use the same address and names"));
  }
  return {};
}

constexpr std::uint64_t kWholeJob = 0;  // the id of the first group

// A rank of a group; the mesh below it is shared by all groups of the process.
class ProcessRank : public Communicator {
 public:
  ProcessRank(std::shared_ptr<Mesh> mesh, std::uint64_t id, std::uint64_t parent,
              std::vector<int> members, int rank)
      : mesh_(std::move(mesh)), id_(id), members_(std::move(members)), rank_(rank) {
    mesh_->add_group(id_, parent, members_);
  }
  ~ProcessRank() override { mesh_->leave(id_); }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int ranks() const override { return static_cast<int>(members_.size()); }
  void abort(const base::Error& why) override { mesh_->abort(id_, why); }

  base::Result<void> wait(Ticket ticket) override {
    const auto found = in_flight_.find(ticket.id);
    if (found == in_flight_.end()) {
      return base::fail(base::usage_error(fmt::format("rank {}", members_[at(rank_)]),
                                          "waits for a call that is not in flight"));
    }
    const auto operation = std::move(found->second);
    in_flight_.erase(found);
    return mesh_->wait(operation);
  }

 protected:
  base::Result<Ticket> start(const Call& call, const void* in, void* out,
                             const AllToAllParts& parts, Stream) override {
    ASSAY_TRY(Transfers transfers, transfers_of(call, rank_, ranks(), in, out, parts));
    transfers.copy_own();
    for (Outgoing& segment : transfers.out) segment.peer = members_[at(segment.peer)];
    for (Incoming& segment : transfers.in) segment.peer = members_[at(segment.peer)];
    Call named = call;
    if (call.kind == CommKind::kSend || call.kind == CommKind::kReceive) {
      named.peer = members_[at(call.peer)];
    }
    ASSAY_TRY(auto operation, mesh_->issue(id_, named, std::move(transfers)));
    in_flight_[++last_ticket_] = std::move(operation);
    return Ticket{last_ticket_};
  }

  base::Result<std::unique_ptr<Communicator>> subgroup(const std::vector<int>& members,
                                                       std::int64_t id) override {
    std::vector<int> named;
    for (const int member : members) named.push_back(members_[at(member)]);
    const auto place = std::ranges::find(members, rank_) - members.begin();
    return std::make_unique<ProcessRank>(mesh_, static_cast<std::uint64_t>(id), id_,
                                         std::move(named), static_cast<int>(place));
  }
  [[nodiscard]] std::int64_t next_group_id() const override { return mesh_->next_group_id(); }
  void set_next_group_id(std::int64_t id) override { mesh_->set_next_group_id(id); }

 private:
  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }

  std::shared_ptr<Mesh> mesh_;
  std::uint64_t id_;
  std::vector<int> members_;  // their ranks in the whole job, by rank here
  int rank_;
  std::uint64_t last_ticket_ = 0;
  std::map<std::uint64_t, std::shared_ptr<Operation>> in_flight_;
};

// One non-blocking socket per rank, in rank order; the entry of this rank is not valid.
base::Result<std::vector<base::UniqueFd>> connect_ranks(const ProcessGroupOptions& options,
                                                        KeyValue& store) {
  const auto deadline = Clock::now() + options.timeout;
  ASSAY_TRY(Listener listener, Listener::open(options.rank, options.ranks, options.address));
  ASSAY_TRY_VOID(
      store.put(fmt::format("{}/{}", options.prefix, options.rank), listener.endpoint().text()));
  // The kernel completes connections, so every rank can first connect to all lower ranks and then
  // accept all higher ones: no two ranks wait for each other.
  std::vector<base::UniqueFd> sockets(static_cast<std::size_t>(options.ranks));
  for (int peer = 0; peer < options.rank; ++peer) {
    ASSAY_TRY(sockets[static_cast<std::size_t>(peer)],
              call_on(peer, options, listener.endpoint().host, store, deadline));
  }
  ASSAY_TRY_VOID(listener.accept_all(deadline, sockets));
  for (int peer = 0; peer < options.rank; ++peer) {
    ASSAY_TRY_VOID(
        read_welcome(peer, options.rank, sockets[static_cast<std::size_t>(peer)].get(), deadline));
  }
  return sockets;
}

}  // namespace

base::Result<std::unique_ptr<Communicator>> connect_processes(const ProcessGroupOptions& options,
                                                              KeyValue& store) {
  if (options.ranks < 1 || options.rank < 0 || options.rank >= options.ranks) {
    return base::fail(base::usage_error(fmt::format("rank {}", options.rank),
                                        fmt::format("is not one of {} ranks", options.ranks)));
  }
  if (options.ranks == 1) return make_single_rank();
  ASSAY_TRY(auto sockets, connect_ranks(options, store));
  ASSAY_TRY(auto mesh, Mesh::create(options.rank, std::move(sockets), options.call_timeout));
  std::vector<int> members(static_cast<std::size_t>(options.ranks));
  std::iota(members.begin(), members.end(), 0);
  return std::make_unique<ProcessRank>(std::move(mesh), kWholeJob, kWholeJob, std::move(members),
                                       options.rank);
}

}  // namespace assay::comm
