// RankGroups: the groups of ranks that a program exchanges data in, one per axis of its layout, and
// the exchanges that a backend has issued and not yet waited for.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/result.h"
#include "comm/communicator.h"
#include "step/program.h"

namespace assay::train {

// Rows that go to each rank along an axis, and that come from each.
struct RowCounts {
  std::vector<std::int64_t> sent;
  std::vector<std::int64_t> received;
};

// Bytes of such rows, those included that stay on the rank.
struct RowsMoved {
  std::int64_t sent_bytes = 0;
  std::int64_t received_bytes = 0;
};

class RankGroups {
 public:
  // Called by every rank of `world`, whose ranks are numbered as the layout's. `world` must outlive
  // the groups.
  static base::Result<std::unique_ptr<RankGroups>> make(comm::Communicator& world,
                                                        const step::Layout& layout);

  [[nodiscard]] int ranks() const { return world_->ranks(); }
  [[nodiscard]] comm::Communicator& world() const { return *world_; }

  // The exchange of an op (step::Kind::kAllGather, kAllToAll, kSend, kReceive) between buffers of
  // this rank and others.
  // `stream`: of device memory, see comm::Communicator::issue.
  base::Result<void> issue(const step::Program& program, const step::Op& op, const std::byte* in,
                           std::byte* out, comm::Stream stream = {});
  // The same of step::Kind::kExchangeRows, whose counts only a step knows.
  base::Result<void> issue_rows(const step::Program& program, const step::Op& op,
                                const RowCounts& rows, const std::byte* in, std::byte* out,
                                comm::Stream stream = {});
  base::Result<void> wait(const step::Op& op);
  // By issue_rows() since the beginning.
  [[nodiscard]] const RowsMoved& rows_moved() const { return moved_; }
  // Device memory: whether what was waited for is good, once the host has waited for the stream.
  base::Result<void> check() const;

  // Seconds in which this rank waited for exchanges, since the last call. Of device memory it is
  // the device that waits, and the backend that knows for how long and adds it.
  double take_waited_s() { return std::exchange(waited_s_, 0); }
  void add_waited_s(double seconds) { waited_s_ += seconds; }

 private:
  explicit RankGroups(comm::Communicator& world) : world_(&world) {}
  [[nodiscard]] comm::Communicator& along(step::Axis axis) const;

  comm::Communicator* world_;
  std::map<step::Axis, std::unique_ptr<comm::Communicator>> groups_;  // where it is not the world
  std::map<std::int32_t, comm::Ticket> open_;                         // by the op's ticket
  double waited_s_ = 0;
  RowsMoved moved_;
  bool on_device_ = false;  // exchanges of device memory were issued
};

}  // namespace assay::train
