#include "assay-train/membership.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/process/environment.h"
#include "comm/cuda/nccl.h"
#include "comm/processes.h"
#include "control/interface.h"
#include "control/secret.h"
#include "store/this_run.h"

namespace assay::cli {
namespace {

constexpr std::chrono::milliseconds kJoinTimeout{60'000};
constexpr char kRunKey[] = "recorded-run";

// The channel as the key-value store that communicators need.
class ChannelStore : public comm::KeyValue {
 public:
  explicit ChannelStore(control::Channel& channel) : channel_(channel) {}
  base::Result<void> put(const std::string& key, const std::string& bytes) override {
    return channel_.put(key, bytes);
  }
  base::Result<std::string> get(const std::string& key,
                                std::chrono::milliseconds timeout) override {
    return channel_.get(key, timeout);
  }

 private:
  control::Channel& channel_;
};

}  // namespace

std::string job_name(const std::filesystem::path& out) {
  constexpr std::size_t kMost = 100;
  const std::string name = std::filesystem::absolute(out).string();
  return name.size() <= kMost ? name : name.substr(name.size() - kMost);
}

void announce_failure(const control::RankAssignment& assignment, const std::filesystem::path& out,
                      const base::Error& error) {
  // Other ranks may have failed in the same way, and rank 0 may be gone.
  constexpr std::chrono::milliseconds kAnnounceTimeout{10'000};
  control::ChannelOptions options = control::options_for(assignment);
  if (options.job.empty()) options.job = job_name(out);
  options.join_timeout = kAnnounceTimeout;
  auto secret = control::find_secret(base::Environment::from_current().values(), out,
                                     assignment.rank, kAnnounceTimeout);
  if (!secret) return;
  options.secret = *std::move(secret);
  static_cast<void>(control::announce_failure(options, error));
  if (assignment.rank == 0) control::remove_secret_file(out);
}

base::Result<void> Membership::connect(const std::map<std::string, std::string>& environment) {
  const bool one_node = assignment_.local_ranks == assignment_.ranks;
  const std::string host = assignment_.rendezvous ? assignment_.rendezvous->host : std::string();
  ChannelStore store(*channel_);
  comm::ProcessGroupOptions ranks;
  ranks.rank = assignment_.rank;
  ranks.ranks = assignment_.ranks;
  ASSAY_TRY(ranks.address, control::data_address(environment, host, one_node));
  ranks.timeout = kJoinTimeout;
  ASSAY_TRY(world_, comm::connect_processes(ranks, store));
  return {};
}

// Tells the processes that record the ranks which run they belong to. Training does not depend on
// it.
void Membership::share_run() const {
  const store::JoinedRun run = store::joined_run();
  if (assignment_.rank == 0) {
    static_cast<void>(channel_->put(kRunKey, run.run_uid));
  } else if (!run.note.empty()) {
    const auto run_uid = channel_->get(kRunKey, kJoinTimeout);
    if (run_uid) static_cast<void>(store::note_joined_run(run.note, *run_uid));
  }
}

base::Result<std::unique_ptr<Membership>> Membership::join(
    const control::RankAssignment& assignment, const std::filesystem::path& out) {
  const auto environment = base::Environment::from_current().values();
  std::unique_ptr<Membership> joined(new Membership(assignment, out));
  control::ChannelOptions options = control::options_for(assignment);
  if (options.job.empty()) options.job = job_name(out);
  ASSAY_TRY(options.secret, control::find_secret(environment, out, assignment.rank, kJoinTimeout));
  ASSAY_TRY(joined->channel_, assignment.rank == 0 ? control::Channel::host(options)
                                                   : control::Channel::join(options));
  joined->share_run();
  if (auto connected = joined->connect(environment); !connected) {
    joined->channel_->report_failure(connected.error());
    return base::fail(std::move(connected).error());
  }
  joined->watch_ =
      joined->channel_->on_failure([world = joined->world_.get()](const control::Failure& failure) {
        world->abort(failure.error);
      });
  return joined;
}

base::Result<comm::Communicator*> Membership::connect_gpus(int gpu) {
  ChannelStore store(*channel_);
  comm::NcclOptions options;
  options.rank = assignment_.rank;
  options.ranks = assignment_.ranks;
  options.device = gpu;
  options.connect_timeout = kJoinTimeout;
  options.failed = [channel = channel_.get()]() -> std::optional<base::Error> {
    if (!channel->failed()) return std::nullopt;
    const std::optional<control::Failure> failure = channel->failure();
    return failure ? std::optional(failure->error) : std::nullopt;
  };
  ASSAY_TRY(gpus_, comm::connect_nccl(options, store));
  return gpus_.get();
}

void Membership::stop_gpus() {
  if (gpus_)
    gpus_->abort(base::failed_error(fmt::format("rank {}", assignment_.rank), "has failed"));
}

Membership::~Membership() {
  watch_.reset();
  gpus_.reset();
  world_.reset();
  if (assignment_.rank == 0) control::remove_secret_file(out_);
}

void Membership::fail(const base::Error& error) {
  channel_->report_failure(error);
  world_->abort(error);
  if (gpus_) gpus_->abort(error);
}

base::Result<void> Membership::leave() {
  // All ranks disconnect their GPUs together: one that ends earlier could be taken for lost.
  if (gpus_) ASSAY_TRY_VOID(world_->barrier());
  watch_.reset();
  gpus_.reset();
  world_.reset();
  return channel_->leave();
}

}  // namespace assay::cli
