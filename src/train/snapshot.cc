#include "train/snapshot.h"

#include <fmt/format.h>

#include "spec/load.h"
#include "train/state.h"

namespace assay::train {
namespace {

using checkpoint::Part;

constexpr struct {
  StateKind kind;
  const char* name;
} kParts[] = {{StateKind::kWeights, "weights"}, {StateKind::kOptimizer, "optimizer"}};

template <class Byte>
std::span<Byte> elements_in(std::span<Byte> bytes, const StateTensor& tensor,
                            const step::Range& elements) {
  const step::Range part = bytes_of(tensor, elements);
  return bytes.subspan(static_cast<std::size_t>(part.first), static_cast<std::size_t>(part.count));
}

// The whole tensor, gathered from the ranks that hold its parts. One tensor at a time, so that no
// rank needs memory for all of the state.
base::Result<std::vector<std::byte>> gathered(Backend& backend, comm::Communicator& ranks,
                                              const StateTensor& tensor) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.bytes()));
  if (tensor.own.count > 0) {
    ASSAY_TRY_VOID(backend.read(tensor.view, elements_in(std::span(bytes), tensor, tensor.own)));
  }
  if (!tensor.sharded) return bytes;
  for (const HeldPart& held : tensor.held) {
    const std::span<std::byte> part = elements_in(std::span(bytes), tensor, held.elements);
    ASSAY_TRY_VOID(ranks.broadcast(part.data(), static_cast<std::int64_t>(part.size()),
                                   comm::Dtype::kU8, static_cast<int>(held.rank)));
  }
  return bytes;
}

base::Result<void> gather_parts(Backend& backend, comm::Communicator& ranks,
                                const step::Program& program, checkpoint::Snapshot& snapshot) {
  for (const auto& [kind, name] : kParts) {
    Part part{.name = name};
    for (const StateTensor& tensor : state_tensors(program, kind)) {
      if (ranks.rank() != 0 && !tensor.sharded) continue;
      ASSAY_TRY(std::vector<std::byte> bytes, gathered(backend, ranks, tensor));
      if (ranks.rank() != 0) continue;
      part.tensors.push_back(checkpoint::owned_tensor(file_info(tensor), std::move(bytes)));
    }
    snapshot.parts.push_back(std::move(part));
  }
  return {};
}

// For a single rank, which holds everything.
base::Result<void> copy_parts(Backend& backend, const step::Program& program,
                              checkpoint::Snapshot& snapshot) {
  std::vector<step::View> views;
  for (const auto& [kind, name] : kParts) {
    Part part{.name = name};
    for (const StateTensor& tensor : state_tensors(program, kind)) {
      views.push_back(tensor.view);
      part.tensors.push_back({.info = file_info(tensor)});
    }
    snapshot.parts.push_back(std::move(part));
  }
  ASSAY_TRY(HostCopy copy, backend.copy_out(program, views));
  auto bytes = copy.views.begin();
  for (Part& part : snapshot.parts) {
    for (checkpoint::Tensor& tensor : part.tensors) {
      tensor.data = *bytes++;
      tensor.owner = copy.memory;
    }
  }
  snapshot.ready = std::move(copy.wait);
  return {};
}

}  // namespace

std::string layout_text(const step::Program& program) {
  std::string text;
  for (const step::Parameter& p : program.model_parameters) {
    text += fmt::format("{} {}x{}\n", p.name, p.rows, p.cols);
  }
  return text;
}

base::Json batch_facts(const spec::JobSpec& job) {
  return {{"sequence", job.batch.sequence},
          {"sequences", job.batch.micro_batch * job.batch.accumulate * job.layout.data_ranks()},
          {"optimizer", job.train.optimizer == spec::Optimizer::kMuon ? "muon" : "adamw"}};
}

base::Result<checkpoint::Snapshot> take_snapshot(Backend& backend, comm::Communicator& ranks,
                                                 const step::Program& program,
                                                 const spec::JobSpec& job,
                                                 const Position& position) {
  checkpoint::Snapshot snapshot;
  snapshot.state = {
      .step = position.step,
      .tokens = position.tokens,
      .seed = static_cast<std::uint64_t>(job.train.seed),
      .data_cursor = {{"windows", position.cursor}},
      .layout = layout_text(program),
      .extra = {{"model", spec::model_toml(program.model)}, {"batch", batch_facts(job)}}};
  if (ranks.ranks() == 1) {
    ASSAY_TRY_VOID(copy_parts(backend, program, snapshot));
  } else {
    ASSAY_TRY_VOID(gather_parts(backend, ranks, program, snapshot));
  }
  return snapshot;
}

}  // namespace assay::train
