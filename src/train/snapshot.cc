#include "train/snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <sstream>

#include "base/check.h"
#include "spec/load.h"
#include "train/checkpoint/shared_write.h"
#include "train/run_settings.h"
#include "train/state.h"

namespace assay::train {
namespace {

using checkpoint::SnapshotPart;

constexpr struct {
  StateKind kind;
  const char* name;
} kParts[] = {{StateKind::kWeights, "weights"}, {StateKind::kOptimizer, "optimizer"}};

// The tensors of one part that this rank saves, without their data, and the views that hold it.
SnapshotPart describe(const step::Program& program, StateKind kind, const char* name,
                      std::vector<step::View>& views) {
  const step::Layout& layout = program.choices.layout;
  const bool alone = layout.ranks() == 1;
  SnapshotPart part{.name = name};
  for (const StateTensor& tensor : state_tensors(program, kind)) {
    const checkpoint::TensorInfo info = file_info(tensor);
    if (alone) {
      views.push_back(tensor.view);
      part.tensors.push_back({.info = info});
      continue;
    }
    part.all.push_back(info);
    step::Range rest = tensor.saved;
    for (const checkpoint::ElementRange& piece : tensor.pieces(tensor.saved)) {
      views.push_back(tensor.view_of({rest.first, piece.count}));
      part.tensors.push_back({.info = info, .elements = piece});
      rest.first += piece.count;
    }
  }
  return part;
}

base::Result<void> copy_parts(Backend& backend, const step::Program& program,
                              checkpoint::Snapshot& snapshot) {
  std::vector<step::View> views;
  for (const auto& [kind, name] : kParts) {
    snapshot.parts.push_back(describe(program, kind, name, views));
  }
  ASSAY_TRY(HostCopy copy, backend.copy_out(program, views));
  auto bytes = copy.views.begin();
  for (SnapshotPart& part : snapshot.parts) {
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
    text += fmt::format("{} {}x{}\n", p.name, p.whole_rows(), p.whole_cols());
  }
  return text;
}

base::Json batch_facts(const spec::JobSpec& job) {
  base::Json facts{
      {"sequence", job.batch.sequence},
      {"sequences", job.batch.micro_batch * job.batch.accumulate * job.layout.data_ranks()},
      {"optimizer", job.train.optimizer == spec::Optimizer::kMuon ? "muon" : "adamw"}};
  // Only settings that differ from the former fixed behaviour, so that older checkpoints still
  // match.
  if (job.data.mix) facts["mix"] = *job.data.mix;
  if (job.data.pack == spec::Packing::kDocuments) facts["pack"] = "documents";
  if (job.data.mask == spec::Mask::kDocument) facts["mask"] = "document";
  return facts;
}

base::Json recipe_facts(const spec::JobSpec& job) {
  return {{"learning_rate", job.train.learning_rate},
          {"warmup_steps", job.train.warmup_steps},
          {"steps", spec::training_steps(job).value_or(0)}};
}

base::Result<checkpoint::Snapshot> take_snapshot(Backend& backend, const step::Program& program,
                                                 const spec::JobSpec& job,
                                                 const Position& position) {
  checkpoint::Snapshot snapshot;
  snapshot.state = {.step = position.step,
                    .tokens = position.tokens,
                    .seed = static_cast<std::uint64_t>(job.train.seed),
                    .data_cursor = {{"windows", position.cursor}},
                    .layout = layout_text(program),
                    .extra = {{"model", spec::model_toml(program.model)},
                              {"batch", batch_facts(job)},
                              {"recipe", recipe_facts(job)},
                              {"settings", settings_of(job)}}};
  ASSAY_TRY_VOID(copy_parts(backend, program, snapshot));
  return snapshot;
}

base::Result<std::string> all_algorithms(comm::Communicator& ranks, const std::string& own) {
  if (ranks.ranks() == 1) return own;
  const auto count = static_cast<std::size_t>(ranks.ranks());
  std::vector<std::int64_t> sizes(count);
  const auto size = static_cast<std::int64_t>(own.size());
  ASSAY_TRY_VOID(ranks.all_gather(&size, sizes.data(), sizeof size, comm::ElementType::kU8));
  const std::int64_t longest = std::ranges::max(sizes);
  if (longest == 0) return std::string();
  std::string padded = own;
  padded.resize(static_cast<std::size_t>(longest));
  std::string texts(count * padded.size(), '\0');
  ASSAY_TRY_VOID(ranks.all_gather(padded.data(), texts.data(), longest, comm::ElementType::kU8));
  std::string machine;
  std::set<std::string> lines;
  for (std::size_t rank = 0; rank < count; ++rank) {
    std::istringstream text(
        texts.substr(rank * padded.size(), static_cast<std::size_t>(sizes[rank])));
    std::string first;
    std::getline(text, first);
    if (rank == 0) machine = first;
    if (first != machine) continue;
    for (std::string line; std::getline(text, line);) lines.insert(line);
  }
  std::string all = machine + "\n";
  for (const std::string& line : lines) all += line + "\n";
  return all;
}

base::Result<AgreedShare> agree_on_share(comm::Communicator& ranks,
                                         const std::filesystem::path& root, std::int64_t step) {
  AgreedShare agreed;
  std::array<char, 256> name{};  // empty: there is no folder to write to
  if (ranks.rank() == 0) {
    if (auto begun = checkpoint::begin_shared(root, step, ranks.ranks())) {
      ASSAY_CHECK(begun->staging.size() < name.size(), "names of hidden folders are short");
      std::ranges::copy(begun->staging, name.begin());
      agreed.share = *std::move(begun);
    } else {
      agreed.failure = begun.error();
    }
  }
  ASSAY_TRY_VOID(ranks.broadcast(name.data(), name.size(), comm::ElementType::kU8, 0));
  if (name[0] != '\0' && ranks.rank() != 0) {
    agreed.share = {.rank = ranks.rank(), .ranks = ranks.ranks(), .staging = name.data()};
  }
  return agreed;
}

}  // namespace assay::train
