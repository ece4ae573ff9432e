// The part of Mesh that waits: sockets are handled by the thread that waits for a call, so that a
// result is not handed from one thread to another, and by the mesh's own thread otherwise.
#include <fmt/format.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/error.h"
#include "comm/mesh.h"

namespace assay::comm {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kWakeEvent = 0xffffffff;
constexpr int kLongestPoll = 1000;  // ms; waits look at their deadline at least this often
// How long the destructor waits for its last bytes to arrive; after a failure there may be nobody
// to receive them.
constexpr milliseconds kLinger = std::chrono::seconds(5);
constexpr milliseconds kLingerFailed{500};

bool control(int epoll, int operation, int fd, std::uint32_t events, std::uint32_t data) {
  epoll_event event{};
  event.events = events;
  event.data.u32 = data;
  return ::epoll_ctl(epoll, operation, fd, &event) == 0;
}

// Bytes of a TCP connection that the peer's machine has not acknowledged yet. Bytes written to a
// Unix socket arrive at once.
bool has_unsent(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
  int bytes = 0;
  return info.tcpi_state == TCP_ESTABLISHED && ::ioctl(fd, SIOCOUTQ, &bytes) == 0 && bytes > 0;
}

}  // namespace

Mesh::Mesh(int rank, std::vector<base::UniqueFd> sockets, milliseconds timeout)
    : rank_(rank),
      timeout_(timeout),
      sockets_epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      thread_epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      watches_writable_(sockets.size()),
      lost_(sockets.size()),
      reasons_(sockets.size()) {
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    links_.emplace_back(static_cast<int>(i), std::move(sockets[i]));
  }
}

base::Result<std::shared_ptr<Mesh>> Mesh::create(int rank, std::vector<base::UniqueFd> sockets,
                                                 milliseconds timeout) {
  std::shared_ptr<Mesh> mesh(new Mesh(rank, std::move(sockets), timeout));
  ASSAY_TRY_VOID(mesh->watch());
  return mesh;
}

base::Result<void> Mesh::watch() {
  bool ok = wake_.valid() && stop_.valid() && sockets_epoll_.valid() && thread_epoll_.valid();
  ok = ok && control(sockets_epoll_.get(), EPOLL_CTL_ADD, wake_.get(), EPOLLIN, kWakeEvent);
  ok = ok && control(thread_epoll_.get(), EPOLL_CTL_ADD, stop_.get(), EPOLLIN, 1);
  ok = ok && control(thread_epoll_.get(), EPOLL_CTL_ADD, sockets_epoll_.get(), EPOLLIN, 0);
  for (std::size_t i = 0; ok && i < links_.size(); ++i) {
    if (!links_[i].open()) continue;
    ok = control(sockets_epoll_.get(), EPOLL_CTL_ADD, links_[i].fd(), EPOLLIN,
                 static_cast<std::uint32_t>(i));
  }
  if (!ok) return base::fail(base::system_error(name(rank_), "cannot watch its sockets", errno));
  // Signals are handled by the program's own threads.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return {};
}

Mesh::~Mesh() {
  if (thread_.joinable()) {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t wrote = ::write(stop_.get(), &one, sizeof one);
    thread_.join();
  }
  // The last messages say that this rank has left. Closing a socket with unread input would discard
  // unsent data, so it stays open until everything has arrived.
  const auto deadline = Clock::now() + (failed_ ? kLingerFailed : kLinger);
  for (;;) {
    bool busy = false;
    for (PeerLink& link : links_) {
      if (!link.open()) continue;
      link.flush(*this);
      busy = busy || link.has_unwritten() || has_unsent(link.fd());
    }
    if (!busy || Clock::now() > deadline) break;
    std::this_thread::sleep_for(milliseconds(1));
  }
}

void Mesh::run() {
  for (;;) {
    std::array<epoll_event, 2> events{};
    const int count = ::epoll_wait(thread_epoll_.get(), events.data(), 2, kLongestPoll);
    for (int i = 0; i < count; ++i) {
      if (events[static_cast<std::size_t>(i)].data.u32 == 1) return;
    }
    if (count <= 0) continue;
    std::unique_lock lock(mutex_);
    poll(0, lock);
    if (polled_by_caller_)
      wake_waiting_thread();  // the waiting thread's call may have completed here
  }
}

void Mesh::wake_waiting_thread() {
  if (!polled_by_caller_) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t wrote = ::write(wake_.get(), &one, sizeof one);
}

// Waits for sockets without the lock, then handles them with it.
void Mesh::poll(int timeout_ms, std::unique_lock<std::mutex>& lock) {
  std::array<epoll_event, 64> events{};
  if (timeout_ms != 0) lock.unlock();
  const int count = ::epoll_wait(sockets_epoll_.get(), events.data(), events.size(), timeout_ms);
  if (timeout_ms != 0) lock.lock();
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.u32 == kWakeEvent) {
      std::uint64_t ignored = 0;
      [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &ignored, sizeof ignored);
      continue;
    }
    handle(static_cast<int>(event.data.u32), event.events);
  }
  flush_queued();
  if (count > 0) changed_.notify_all();
}

void Mesh::handle(int peer, std::uint32_t events) {
  PeerLink& from = link(peer);
  if (!from.open()) return;
  if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) == 0) return;  // flush_queued writes
  const auto received = from.receive(*this);
  if (received && *received) return;
  peer_lost(peer, received ? "connection closed" : received.error().what + "; connection closed");
}

void Mesh::flush_queued() {
  for (std::size_t i = 0; i < links_.size(); ++i) {
    PeerLink& link = links_[i];
    if (!link.open()) continue;
    if (link.has_unwritten()) link.flush(*this);
    const bool writable = link.has_unwritten();
    if (writable == watches_writable_[i]) continue;
    watches_writable_[i] = writable;
    control(sockets_epoll_.get(), EPOLL_CTL_MOD, link.fd(),
            EPOLLIN | (writable ? static_cast<std::uint32_t>(EPOLLOUT) : 0U),
            static_cast<std::uint32_t>(i));
  }
}

// Chooses who is woken when a socket is ready: the mesh's thread, or only the waiting thread.
void Mesh::set_polled_by_thread(bool to_thread) {
  polled_by_caller_ = !to_thread;
  control(thread_epoll_.get(), EPOLL_CTL_MOD, sockets_epoll_.get(),
          to_thread ? static_cast<std::uint32_t>(EPOLLIN) : 0U, 0);
}

base::Result<void> Mesh::wait(const std::shared_ptr<Operation>& operation) {
  std::unique_lock lock(mutex_);
  const auto deadline = Clock::now() + timeout_;
  bool driving = false;
  while (!operation->ended()) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
    if (left <= milliseconds(0)) {
      fail_timed_out(*operation);
      break;
    }
    const auto most = std::min(left, milliseconds(kLongestPoll));
    if (!driving && !polled_by_caller_) {
      driving = true;
      set_polled_by_thread(false);
    }
    if (driving) {
      poll(static_cast<int>(most.count()), lock);
    } else {
      changed_.wait_for(lock, most);
    }
  }
  if (driving) {
    set_polled_by_thread(true);
    changed_.notify_all();  // another waiting thread takes over
  }
  if (operation->failure) return base::fail(*operation->failure);
  return {};
}

void Mesh::fail_timed_out(const Operation& operation) {
  MeshGroup& group = groups_.at(operation.group);
  const auto blames = [&](const std::map<MessageKey, MeshGroup::Segment>& segments) {
    for (const auto& [key, segment] : segments) {
      if (segment.operation.get() == &operation) return key.peer;
    }
    return rank_;
  };
  int missing = blames(group.expected);
  if (missing == rank_) missing = blames(group.offered);
  if (missing == rank_ && !operation.transfers.out.empty()) {
    missing = operation.transfers.out.front().peer;  // it does not read
  }
  fail(group,
       base::failed_error(
           name(missing),
           fmt::format("did not join {} within {} ms", to_text(operation.call), timeout_.count()),
           "check whether that rank hangs"),
       true);
  flush_queued();
}

}  // namespace assay::comm
