// Work: everything that the time and the memory of a step depend on, as plain numbers; rates and
// sizes of machines have their units. Jobs (work_of_job.h) and published rows
// (calibrate/row_work.h) both become one, and it is the only input of the model (step_time.h,
// memory.h).
//
// Layers and ranks are factors here, never loops, so a step on 100,000 devices is as cheap to
// predict as a step on one. What our trainer computes and exchanges in a layer comes from the
// description of the step that it executes (trainer_step.h). No such description exists for other
// software, and so for all published rows: Shape is what is known of their models, and
// layer_pieces.h and mixture_time.h price it in closed form, as they do layouts that our trainer
// refuses.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/units.h"
#include "plan/model/recompute.h"
#include "plan/model/software.h"
#include "plan/network/network.h"

namespace assay::plan {

// A decoder. Widths are whole; the layout cuts them.
struct Shape {
  double layers = 0;
  double dim = 0;
  double heads = 0;
  double kv_heads = 0;
  double head_dim = 0;
  double ffn = 0;           // of a dense layer
  double mlp_matrices = 3;  // 3: gated; 2: not
  double vocab = 0;
  bool tied = false;
  bool ragged_vocab = false;  // not a multiple of 8: the head's products are unaligned
  // Columns of queries, keys and values, with the latents that they are made from, and rows of the
  // product after attention.
  double qkv = 0;
  double attention_out = 0;
  double latent_qkv = 0;  // columns that latent attention's products before it would have as one
  // A share of the layers attends to the last `window` keys only.
  double window = 0;
  double windowed_share = 0;
  double state_share = 0;  // share of layers that keep a state instead of attending
  // Mixtures.
  double experts = 1;
  double experts_per_token = 1;
  double expert_ffn = 0;
  double expert_dim = 0;     // of a narrower space that experts work in; 0: dim
  double capacity = 1;       // rows that experts compute and are sent / an even share
  double most_load = 0;      // most rows that an expert computes / an even share; 0: no limit
  double shared_ffn = 0;     // of experts that see every token
  double expert_groups = 0;  // that a token's experts are chosen from; 0: any
  double moe_layers = 0;
  // Elements that experts read and write for a routed row beside what every mixture does, in
  // passes over their width and over the row's: biases, and an activation in several operators.
  double expert_passes = 0;
  double row_passes = 0;

  double streams = 1;      // of the residual: hyper-connections mix several
  double predictions = 1;  // heads: of the next token, and of tokens after it
  // In an exchange of our trainer, the part of each rank ends at a multiple of this many elements.
  double norm_block = 1;

  double body_parameters = 0;  // of all layers
  double parameters = 0;       // of the whole model

  [[nodiscard]] bool is_moe() const { return experts > 1; }
  // Width of the rows that experts see.
  [[nodiscard]] double expert_width() const { return expert_dim > 0 ? expert_dim : dim; }
  // Rows that experts compute, per token of a mixture.
  [[nodiscard]] double copies() const { return experts_per_token * capacity; }
};

// Ranks = dp * fsdp * tp * pp * cp, and * ep where experts have a separate axis.
struct Degrees {
  double dp = 1;
  double fsdp = 1;
  double tp = 1;
  double pp = 1;
  double cp = 1;
  double ep = 1;
  bool ep_axis = false;      // else experts are spread over the ranks of dp or fsdp
  bool cp_shards = false;    // ranks that share sequences divide the state, too
  double units = 1;          // that fsdp gathers a layer in
  double chunks = 1;         // of a stage, for interleaved pipelines
  bool gpipe = false;        // every micro-batch forward before any goes backward
  bool zero_bubble = false;  // gradients of weights are made later, where a stage would wait
  bool two_rounds = false;   // zero bubble that holds twice as many micro-batches
  bool spared_ends = false;  // the first stage has fewer layers too, where the last has
  bool sequence_parallel = false;
  bool experts_cut = false;  // over the tensor-parallel ranks, which gather rows for them
  double ranks = 1;
  // Replicas that share the optimizer's state, and gradients; 0: by software.shards_optimizer.
  double state_shards = 0;
  double gradient_shards = 0;
  // Rows of the rank whose experts have the most / an even share: the other ranks wait for it.
  double expert_load = 1;
};

struct Batch {
  double sequence = 0;
  double micro_batch = 1;
  double micros = 1;  // per optimizer step
};

enum class Generation : std::uint8_t { kOlder, kAmpere, kHopper, kBlackwell, kWorkstation, kAmd };
std::string_view to_text(Generation generation);

// One accelerator, by its data sheet.
struct Card {
  Generation generation = Generation::kHopper;
  base::FlopsPerSecond bf16_flops;  // dense; fp16's for a job in fp16
  base::FlopsPerSecond fp8_flops;
  base::FlopsPerSecond fp4_flops;  // 0: none
  base::BytesPerSecond memory_rate;
  double multiprocessors = 0;
  double exponentials = 1;  // per second and flop, relative to other cards
  base::Watts watts;
  base::Bytes cache;  // L2
  base::Bytes memory;
};

// What connects the cards.
struct Links {
  Network network;
  // Host threads per card, where cards are on two sockets, threads may run on either, and they are
  // too few (Constants::cross_socket_host). 0: enough threads, or pinned ones.
  double scarce_threads = 0;

  [[nodiscard]] double per_node() const { return static_cast<double>(network.devices_per_node()); }
};

// Modules that other software's selective recomputation repeats, beside norms and activations.
struct RecomputedModules {
  bool attention = false;
  bool mlp = false;
  bool experts = false;  // with their dispatch
};

// What Muon exchanges. Stacked, as in nanochat: matrices of one shape form a stack, each rank
// updates whole matrices, and `bytes` per parameter are reduced and gathered in `calls` calls; the
// defaults are those of its d26. Not stacked: gradients and weights as with AdamW, and every matrix
// is gathered once more.
struct MuonExchange {
  bool stacked = true;
  double bytes = 11.46 / 1.68;
  double calls = 40;
};

class TrainerSteps;

struct Work {
  Shape shape;
  Degrees degrees;
  Batch batch;
  Card card;
  Links links;
  Software software;
  RecomputeKind recompute = RecomputeKind::kNone;
  RecomputedModules recomputed;
  bool fp8 = false;         // or fewer bits
  bool fp8_by_row = false;  // a scale per row, not per matrix
  bool fp4 = false;
  bool lora = false;           // the model's own weights are not trained
  bool muon = false;           // for matrices, and AdamW for all else
  bool deterministic = false;  // attention has the same bits every time
  MuonExchange muon_exchange;
  // Of a mixture: rows of the most loaded expert, as a multiple of an even share.
  double imbalance = 1;
  // Of a job that our trainer executes: what its steps are (trainer_step.h).
  std::shared_ptr<TrainerSteps> trainer;
};

// Whether gradients are exchanged as our trainer does it. Mixtures that it does not execute are
// priced with the exchange of other software.
inline bool folds_gradients(const Work& work) {
  const bool executed = !work.shape.is_moe() || work.trainer != nullptr;
  return work.software.folds_gradients && executed && !work.lora;
}

// Ranks with the same parameters, or the same shards of them.
inline double replicas(const Degrees& d) {
  return d.dp * (d.cp_shards && d.fsdp > 1 ? 1 : d.cp);
}
// How far apart ranks are that share state: those in between compute the same tokens.
inline double sharers_apart(const Degrees& d) {
  return d.tp * (d.cp_shards ? 1 : d.cp);
}

// Replicas that share the optimizer's state.
inline double state_shards(const Work& work) {
  if (work.degrees.state_shards > 0) return work.degrees.state_shards;
  return work.software.shards_optimizer ? replicas(work.degrees) : 1;
}

}  // namespace assay::plan
