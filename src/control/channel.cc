#include "control/channel.h"

#include <fmt/format.h>

#include <thread>

#include "control/client.h"
#include "control/server.h"

namespace assay::control {
namespace {

using Clock = std::chrono::steady_clock;

// Rank 0 answers every request by its timeout; this is for the case that rank 0 itself does not.
constexpr Milliseconds kGrace{10'000};
// Time for a failure to reach rank 0 and come back.
constexpr Milliseconds kReportTime{5'000};
// How long rank 0 stays after a failure for ranks that have not joined yet: otherwise they could
// not connect and would not learn why.
constexpr Milliseconds kLateRanks{5'000};

base::Result<void> check(const ChannelOptions& options) {
  const auto refuse = [&](std::string what) {
    return base::fail(base::usage_error(fmt::format("rank {} of {}", options.rank, options.ranks),
                                        std::move(what)));
  };
  if (options.ranks < 1 || options.rank < 0 || options.rank >= options.ranks) {
    return refuse("there is no such rank");
  }
  if (options.secret.text().empty()) return refuse("the job has no secret");
  if (options.job.size() > kMaxJob) return refuse("the job's name is longer than 128 bytes");
  return {};
}

// Waits until every rank has joined and been informed of the failure, or until the limit.
void wait_for_late_ranks(const Channel& channel, SteadyTime limit) {
  const auto all_answered = [&] {
    for (const Member& member : channel.members()) {
      if (member.state == MemberState::kAbsent) return false;
    }
    return true;
  };
  while (!all_answered() && Clock::now() < limit) std::this_thread::sleep_for(Milliseconds(10));
}

}  // namespace

ChannelOptions options_for(const RankAssignment& assignment) {
  ChannelOptions options;
  options.job = assignment.job;
  options.rank = assignment.rank;
  options.ranks = assignment.ranks;
  options.listener_fd = assignment.listener_fd;
  if (assignment.rendezvous) options.rendezvous = *assignment.rendezvous;
  // Rank 0 listens on all its addresses, because its host name may resolve differently on other
  // hosts.
  if (assignment.rank == 0) options.rendezvous.host.clear();
  return options;
}

Channel::Channel(ChannelOptions options, std::unique_ptr<Inbox> inbox,
                 std::unique_ptr<HubLink> link)
    : options_(std::move(options)), inbox_(std::move(inbox)), link_(std::move(link)) {}

Channel::~Channel() {
  link_->stop();
}

base::Result<std::unique_ptr<Channel>> Channel::start_hosting(const ChannelOptions& options) {
  ASSAY_TRY_VOID(check(options));
  ASSAY_TRY(std::unique_ptr<Inbox> inbox, Inbox::make());
  ASSAY_TRY(Listener listener, options.listener_fd ? inherited_listener(*options.listener_fd)
                                                   : listen_at(options.rendezvous));
  ChannelOptions known = options;
  known.rendezvous.port = listener.port;
  ASSAY_TRY(std::unique_ptr<HubLink> server, Server::start(known, std::move(listener), *inbox));
  return std::unique_ptr<Channel>(
      new Channel(std::move(known), std::move(inbox), std::move(server)));
}

base::Result<std::unique_ptr<Channel>> Channel::host(const ChannelOptions& options) {
  const SteadyTime deadline = Clock::now() + options.join_timeout;
  ASSAY_TRY(std::unique_ptr<Channel> channel, start_hosting(options));
  const auto complete = channel->inbox_->wait_complete(
      deadline + kGrace, base::failed_error("rank 0", "its own thread does not answer",
                                            "is this machine overloaded?"));
  if (!complete) {
    wait_for_late_ranks(*channel, std::min(deadline, Clock::now() + kLateRanks));
    return base::fail(complete.error());
  }
  return channel;
}

base::Result<std::unique_ptr<Channel>> Channel::start_joining(const ChannelOptions& options,
                                                              Purpose purpose,
                                                              Milliseconds& join_time_left) {
  ASSAY_TRY_VOID(check(options));
  ASSAY_TRY(std::unique_ptr<Inbox> inbox, Inbox::make());
  ASSAY_TRY(Admission admission, enter_job(options, purpose));
  join_time_left = admission.join_time_left;
  ASSAY_TRY(std::unique_ptr<HubLink> client,
            Client::start(options, std::move(admission.connection), *inbox));
  return std::unique_ptr<Channel>(new Channel(options, std::move(inbox), std::move(client)));
}

base::Result<std::unique_ptr<Channel>> Channel::join(const ChannelOptions& options) {
  Milliseconds join_time_left{0};
  ASSAY_TRY(std::unique_ptr<Channel> channel,
            start_joining(options, Purpose::kJoin, join_time_left));
  ASSAY_TRY_VOID(channel->inbox_->wait_complete(
      Clock::now() + join_time_left + kGrace,
      base::failed_error(fmt::format("rank {}", options.rank),
                         "rank 0 did not report whether all ranks have joined")));
  return channel;
}

std::string Channel::local_address() const {
  return link_->local_address();
}

base::Result<std::string> Channel::request(FrameKind kind, std::string_view what,
                                           std::string_view key, std::string_view value,
                                           Milliseconds timeout) {
  const std::string where = fmt::format("{} '{}'", what, key);
  if (key.empty() || key.size() > kMaxKey) {
    return base::fail(base::usage_error(where, "a name has 1 to 256 bytes"));
  }
  if (value.size() > kMaxValue) {
    return base::fail(base::usage_error(
        where, fmt::format("a value of {} bytes is longer than 1 MiB", value.size())));
  }
  if (const auto failure = inbox_->failure()) return base::fail(failure->error);
  const std::uint64_t id = inbox_->open();
  link_->send({.kind = kind,
               .id = id,
               .number = timeout.count(),
               .key = std::string(key),
               .value = std::string(value)});
  return inbox_->take(
      id, Clock::now() + timeout + kGrace,
      base::failed_error(
          where, fmt::format("rank 0 has not answered rank {} after {:.3g} s", options_.rank,
                             std::chrono::duration<double>(timeout + kGrace).count())));
}

base::Result<void> Channel::put(std::string_view key, std::string_view value) {
  ASSAY_TRY_VOID(request(FrameKind::kPut, "key", key, value, options_.request_timeout));
  return {};
}

base::Result<std::string> Channel::get(std::string_view key, Milliseconds timeout) {
  return request(FrameKind::kGet, "key", key, {}, timeout);
}

base::Result<void> Channel::barrier(std::string_view name, Milliseconds timeout) {
  ASSAY_TRY_VOID(request(FrameKind::kBarrier, "barrier", name, {}, timeout));
  return {};
}

void Channel::report_failure(const base::Error& error) {
  if (inbox_->failed()) return;
  link_->send({.kind = FrameKind::kFailure, .value = encode_error(error)});
  inbox_->wait_failed(Clock::now() + kReportTime);
}

void Channel::progress(std::int64_t step) {
  link_->set_step(step);
}

std::vector<Member> Channel::members() const {
  return link_->members();
}

base::Result<void> Channel::leave(Milliseconds timeout) {
  link_->send({.kind = FrameKind::kGoodbye});
  const bool together = inbox_->wait_until_rank_0_leaves(Clock::now() + timeout);
  std::vector<int> staying;
  if (!together && options_.rank == 0) {
    for (const Member& member : link_->members()) {
      if (member.rank != 0 && member.state == MemberState::kPresent) staying.push_back(member.rank);
    }
    link_->send({.kind = FrameKind::kGoodbye, .number = 1});
    inbox_->wait_until_rank_0_leaves(Clock::now() + Milliseconds(1'000));
  }
  link_->stop();
  if (const auto failure = inbox_->failure()) return base::fail(failure->error);
  if (together) return {};
  return base::fail(base::failed_error(
      fmt::format("rank {}", options_.rank),
      options_.rank == 0 ? fmt::format("rank{} {} of {} ha{} not left after {:.3g} s",
                                       staying.size() == 1 ? "" : "s", rank_list(staying),
                                       options_.ranks, staying.size() == 1 ? "s" : "ve",
                                       std::chrono::duration<double>(timeout).count())
                         : "rank 0 did not confirm that this rank may leave"));
}

base::Result<void> announce_failure(const ChannelOptions& options, const base::Error& error) {
  Milliseconds join_time_left{0};
  ASSAY_TRY(std::unique_ptr<Channel> channel,
            options.rank == 0
                ? Channel::start_hosting(options)
                : Channel::start_joining(options, Purpose::kReportFailure, join_time_left));
  channel->report_failure(error);
  if (options.rank != 0) return {};
  wait_for_late_ranks(*channel, Clock::now() + std::min(options.join_timeout, kLateRanks));
  return {};
}

}  // namespace assay::control
