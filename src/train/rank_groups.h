// RankGroups: the groups of ranks in which a program communicates, one per axis of its layout, and
// the operations that a backend has issued but not yet waited for.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/result.h"
#include "comm/communicator.h"
#include "step/program.h"

namespace assay::train {

// The number of rows sent to and received from each rank along an axis.
struct RowCounts {
  std::vector<std::int64_t> sent;
  std::vector<std::int64_t> received;
};

// Bytes of such rows, including those that stay on the rank.
struct RowsMoved {
  std::int64_t sent_bytes = 0;
  std::int64_t received_bytes = 0;
};

class RankGroups {
 public:
  // Called by every rank of `world`, which must number ranks as the layout does and must outlive
  // the groups.
  static base::Result<std::unique_ptr<RankGroups>> make(comm::Communicator& world,
                                                        const step::Layout& layout);

  [[nodiscard]] int ranks() const { return world_->ranks(); }
  [[nodiscard]] comm::Communicator& world() const { return *world_; }

  // Starts the communication of an op (step::OpKind::kAllGather, kAllToAll, kSend, kReceive)
  // between buffers of this rank and others. `stream`: for device memory, see
  // comm::Communicator::issue.
  base::Result<void> issue(const step::Program& program, const step::Op& op, const std::byte* in,
                           std::byte* out, comm::Stream stream = {});
  // The same for step::OpKind::kExchangeRows, whose row counts are known only during the step.
  base::Result<void> issue_rows(const step::Program& program, const step::Op& op,
                                const RowCounts& rows, const std::byte* in, std::byte* out,
                                comm::Stream stream = {});
  base::Result<void> wait(const step::Op& op);
  // Total moved by issue_rows().
  [[nodiscard]] const RowsMoved& rows_moved() const { return moved_; }
  // For device memory: whether the communication that was waited for succeeded; call it after the
  // host has synchronised with the stream.
  base::Result<void> check() const;

  // Seconds that this rank has waited for communication since the last call. With device memory it
  // is the device that waits; the backend measures that and adds it.
  double take_waited_s() { return std::exchange(waited_s_, 0); }
  void add_waited_s(double seconds) { waited_s_ += seconds; }

 private:
  explicit RankGroups(comm::Communicator& world) : world_(&world) {}
  [[nodiscard]] comm::Communicator& along(step::Axis axis) const;

  comm::Communicator* world_;
  std::map<step::Axis, std::unique_ptr<comm::Communicator>> groups_;  // except the world
  std::map<std::int32_t, comm::Ticket> open_;                         // by the op's ticket
  double waited_s_ = 0;
  RowsMoved moved_;
  bool on_device_ = false;  // communication of device memory was issued
};

}  // namespace assay::train
