// Every key of every section. To add a key: add the field to its struct and a line here.
#include "spec/schema.h"

#include <cmath>

#include "spec/fields.h"

namespace assay::spec {

std::string number_text(double number) {
  // Limits are whole, or small fractions; 1e-06 and 1e+17 are not for people.
  if (number == std::floor(number)) return base::grouped(static_cast<std::int64_t>(number));
  std::string text = fmt::format("{:.6f}", number);
  text.erase(text.find_last_not_of('0') + 1);
  return text;
}

template <class V>
void describe(V& key, ModelSpec& m) {
  key({"vocab", "tokens in the vocabulary", true, 2, 1e8}, m.vocab);
  key({"dim", "width of the residual stream", true, 1, 1e6}, m.dim);
  key({"layers", "decoder blocks", true, 1, 1e5}, m.layers);
  key({"heads", "query heads", true, 1, 1e5}, m.heads);
  key({"kv_heads", "key and value heads", false, 1, 1e5, "heads"}, m.kv_heads);
  key({"head_dim", "width of a head", false, 1, 1e5, "dim / heads"}, m.head_dim);
  key({"ffn", "inner width of the MLP, and of an expert unless expert_ffn is set", true, 1, 1e7},
      m.ffn);
  key({"context", "longest sequence", true, 1, 1e8}, m.context);
  key({"norm", "normalisation before each sub-block"}, m.norm);
  key({"qk_norm", "normalisation of queries and keys"}, m.qk_norm);
  key({"norm_epsilon", "added to the mean square under the root", false, 0, 1}, m.norm_epsilon);
  key({"mlp", "activation of the MLP; swiglu has a third matrix"}, m.mlp);
  key({"positions", "position encoding"}, m.positions);
  key({"rope_theta", "base of the rotary frequencies", false, 1, 1e12}, m.rope_theta);
  key({"rope_factor", "Llama 3.1 scaling: low frequencies are divided by this; 1: no scaling",
       false, 1, 1e6},
      m.rope_factor);
  key({"rope_low", "low frequencies: up to this many turns within rope_context", false, 1e-6, 1e6},
      m.rope_low);
  key({"rope_high", "high frequencies, not scaled: at least this many turns within rope_context",
       false, 1e-6, 1e6},
      m.rope_high);
  key({"rope_context", "context length before scaling", false, 1, 1e8}, m.rope_context);
  key({"bias", "biases on the linear layers"}, m.bias);
  key({"qkv_bias", "biases on queries, keys and values only"}, m.qkv_bias);
  key({"tied", "the output head shares the weights of the embedding"}, m.tied);
  key({"kv_lora_rank", "latent attention: width that keys and values are made from; 0: none", false,
       0, 1e5},
      m.kv_lora_rank);
  key({"q_lora_rank", "the same for queries; 0: they are made directly", false, 0, 1e5},
      m.q_lora_rank);
  key({"qk_nope_head_dim", "latent attention: width of a head's keys without positions", false, 0,
       1e5},
      m.qk_nope_head_dim);
  key({"qk_rope_head_dim", "latent attention: width of a key's positions, common to all heads",
       false, 0, 1e5},
      m.qk_rope_head_dim);
  key({"v_head_dim", "latent attention: width of a head's values", false, 0, 1e5}, m.v_head_dim);
  key({"experts", "experts per mixture layer; 0 is a dense model", false, 0, 1e5}, m.experts);
  key({"experts_per_token", "experts each token is sent to", false, 0, 1e5}, m.experts_per_token);
  key({"moe_every", "every n-th layer is a mixture", false, 1, 1e5}, m.moe_every);
  key({"capacity", "maximum rows per expert, as a multiple of an even share; 0: no limit", false, 0,
       1e3},
      m.capacity);
  key({"expert_ffn", "inner width of an expert", false, 0, 1e7, "ffn"}, m.expert_ffn);
  key({"shared_ffn", "inner width of an expert that every token uses; 0: none", false, 0, 1e7},
      m.shared_ffn);
  key({"dense_layers", "dense layers before the first mixture", false, 0, 1e5}, m.dense_layers);
  key({"router", "how experts are chosen; sigmoid: with a bias that balances the load"}, m.router);
  key({"router_groups", "groups of experts that a token's experts are chosen from, at most; 0: any",
       false, 0, 1e5},
      m.router_groups);
  key({"normalise_router", "the weights of a token's experts add up to router_scale"},
      m.normalise_router);
  key({"router_scale", "factor on the weights of a token's experts", false, 1e-6, 1e6},
      m.router_scale);
  key({"value_embeddings", "nanochat: token embeddings added to the values of every second layer"},
      m.value_embeddings);
  key({"residual_lambdas", "nanochat: learned scales of the residual and of the first embedding"},
      m.residual_lambdas);
}

template <class V>
void describe(V& key, BatchSpec& b) {
  key({"sequence", "tokens per sequence", false, 1, 1e8, "model.context"}, b.sequence);
  key({"micro_batch", "sequences per data rank and forward pass", false, 1, kMostSequences},
      b.micro_batch);
  key({"accumulate", "forward passes per optimizer step", false, 1, kMostSequences}, b.accumulate);
}

template <class V>
void describe(V& key, TrainSpec& t) {
  key({"steps", "optimizer steps", false, 1, kMostTokens}, t.steps);
  key({"tokens", "training length in tokens, instead of steps", false, 1, kMostTokens}, t.tokens);
  key({"tokens_per_matmul_parameter",
       "training length as tokens per matmul parameter (one that multiplies activations)", false,
       1e-6, 1e9},
      t.tokens_per_matmul_parameter);
  key({"optimizer", "muon: Muon for the blocks' matrices, AdamW for the rest"}, t.optimizer);
  key({"precision", "data type of the matrix products", false, {}, {}, "bf16; on a CPU fp32"},
      t.precision);
  key({"recompute", "what is recomputed in the backward pass"}, t.recompute);
  key({"seed", "seed of the initial weights and of the order of the data", false, 0, 1e15}, t.seed);
  key({"init_std",
       "standard deviation of the initial matrices; divided by √(2 · layers) for those that write "
       "to the residual stream",
       false, 0, 1e3},
      t.init_std);
  key({"embedding_init_std", "the same for the embedding", false, 0, 1e3, "train.init_std"},
      t.embedding_init_std);
  key({"head_init_std", "the same for the output head, if it is not tied", false, 0, 1e3,
       "train.init_std"},
      t.head_init_std);
  key({"learning_rate", "peak learning rate", false, 0, 1e3, "by width, batch and steps"},
      t.learning_rate);
  key({"schedule", "decay of the learning rate after the warm-up"}, t.schedule);
  key({"warmup_steps", "steps in which the learning rate rises from 0", false, 0, kMostTokens,
       "by width and rate, a tenth to a third of the steps"},
      t.warmup_steps);
  key({"final_fraction", "learning rate at the end, as a fraction of the peak", false, 0, 1},
      t.final_fraction);
  key({"decay_fraction", "wsd: fraction of the steps in which the learning rate decays", false, 0,
       1},
      t.decay_fraction);
  key({"weight_decay", "weight decay of matrices and embeddings, multiplied by the learning rate",
       false, 0, 1e3},
      t.weight_decay);
  key({"beta1", "AdamW: decay of the first moment", false, 0, 1}, t.beta1);
  key({"beta2", "AdamW: decay of the second moment", false, 0, 1}, t.beta2);
  key({"epsilon", "AdamW: added to the denominator", false, 0, 1}, t.epsilon);
  key({"clip", "global gradient norm to clip to; 0: no clipping", false, 0, 1e9}, t.clip);
  key({"z_loss", "weight of the penalty on the square of log Z", false, 0, 1e3}, t.z_loss);
  key({"balance_loss", "mixtures: weight of the loss that balances experts", false, 0, 1e3,
       "0.01; with a sigmoid router 0"},
      t.balance_loss);
  key({"router_z_loss", "mixtures: weight of the penalty on the square of the router's log Z",
       false, 0, 1e3, "0.001; with a sigmoid router 0"},
      t.router_z_loss);
  key({"balance_rate", "mixtures with a sigmoid router: change of its bias per step", false, 0, 1},
      t.balance_rate);
  key({"muon_learning_rate", "Muon: peak learning rate of the matrices", false, 0, 1e3},
      t.muon_learning_rate);
  key({"muon_momentum", "Muon: momentum of the matrices", false, 0, 1}, t.muon_momentum);
  key({"non_finite", "skip a step whose gradients are not finite, or stop the run"}, t.non_finite);
  key({"max_skipped", "stop the run when this many steps in a row were skipped", false, 1,
       kMostTokens},
      t.max_skipped);
  key({"deterministic", "bitwise reproducible, even where that costs speed"}, t.deterministic);
  key({"validate_every", "steps from one validation to the next; 0: never", false, 0, kMostTokens},
      t.validate_every);
  key({"validate_tokens", "tokens per validation, always the same ones", false, 1, kMostTokens},
      t.validate_tokens);
}

template <class V>
void describe(V& key, DataSpec& d) {
  key({"train", "a token shard or a folder of them; default: the built-in text"}, d.train);
  key({"mix", "several in place of data.train, with the share of each: \"web=0.7, code=0.3\""},
      d.mix);
  key({"validation", "validation data for train.validate_every: a token shard or a folder of them"},
      d.validation);
  key({"type", "token type of files without a header"}, d.type);
  key({"pack",
       "stream: windows cut anywhere; documents: each begins with a document, in a seeded order"},
      d.pack);
  key({"mask",
       "document: attention stays within documents, and their first tokens are not targets; none: "
       "no mask"},
      d.mask);
}

template <class V>
void describe(V& key, CheckpointSpec& c) {
  key({"every", "steps between checkpoints; without it only the last step is saved", false, 1,
       kMostTokens},
      c.every);
  key({"keep", "number of newest checkpoints to keep", false, 1, 1e6}, c.keep);
}

template <class V>
void describe(V& key, LayoutSpec& l) {
  key({"ranks", "number of ranks: the product of the degrees", false, 1, kMostRanks,
       "the cluster's devices"},
      l.ranks);
  key({"dp", "replicas", false, 1, kMostDegree, "the ranks divided by the other degrees"}, l.dp);
  key({"fsdp", "ranks that shard the training state", false, 1, kMostDegree}, l.fsdp);
  key({"zero", "what fsdp shards: 1 optimizer, 2 and gradients, 3 and parameters", false, 1, 3},
      l.zero);
  key({"unit", "what fsdp gathers at once: a block, or its attention and its MLP separately"},
      l.unit);
  key({"tp", "tensor-parallel ranks", false, 1, kMostDegree}, l.tp);
  key({"sequence_parallel", "shard norms and residuals over the tensor-parallel ranks"},
      l.sequence_parallel);
  key({"pp", "pipeline stages", false, 1, kMostDegree}, l.pp);
  key({"pp_schedule",
       "order of micro-batches in the pipeline; zb-h1: 1f1b with a third of its idle time"},
      l.pp_schedule);
  key({"pp_chunks", "model chunks per stage, for the interleaved schedule", false, 1, kMostDegree},
      l.pp_chunks);
  key({"cp", "context-parallel ranks", false, 1, kMostDegree}, l.cp);
  key({"ep", "expert-parallel ranks", false, 1, kMostDegree}, l.ep);
}

template <class V>
void describe(V& key, DeviceSpec& d) {
  key({"kind", "type of device"}, d.kind);
  key({"name", "as the driver reports it", true}, d.name);
  key({"memory", "memory of one device", false, 1}, d.memory);
  key({"memory_bandwidth", "bandwidth of that memory", false, 1}, d.memory_bandwidth);
  key({"bf16", "peak dense rate", false, 1}, d.bf16);
  key({"fp16", "peak dense rate", false, 1}, d.fp16);
  key({"fp8", "peak dense rate", false, 1}, d.fp8);
  key({"tf32", "peak dense rate", false, 1}, d.tf32);
  key({"fp32", "peak rate outside the matrix units", false, 1}, d.fp32);
  key({"power", "power limit of one device", false, 1}, d.power);
}

template <class V>
void describe(V& key, LinkSpec& l) {
  key({"kind", "how the devices of a node are connected"}, l.kind);
  key({"bandwidth", "per device and direction", false, 1}, l.bandwidth);
  key({"group", "devices per NVLink group, or that nvswitch connects beyond a node", false, 2,
       kMostDegree},
      l.group);
  key({"pcie", "PCIe bandwidth per device and direction", false, 1}, l.pcie);
}

template <class V>
void describe(V& key, NetworkSpec& n) {
  key({"kind", "how the nodes are connected"}, n.kind);
  key({"bandwidth", "per node and direction", false, 1}, n.bandwidth);
  key({"ports", "network ports per node", false, 1, kMostDegree}, n.ports);
}

template <class V>
void describe(V& key, ClusterSpec& c) {
  key({"nodes", "machines", false, 1, kMostNodes}, c.nodes);
  key({"max_nodes", "machines that are available together", false, 1, kMostNodes, "nodes"},
      c.max_nodes);
  key({"devices_per_node", "devices in a machine", true, 1, 1e4}, c.devices_per_node);
  key({"cpus", "CPUs per node, as the provider counts them", false, 1, kMostCpus}, c.cpus);
  key({"numa_nodes", "NUMA nodes that a node's devices are attached to", false, 1, kMostNumaNodes},
      c.numa_nodes);
  key({"unpinned", "host threads run on any socket, as in containers of GPU clouds"}, c.unpinned);
  key({"host_memory", "memory of a node's CPUs", false, 1}, c.host_memory);
  key({"device", "the device", true}, c.device);
  key({"link", "connections inside a node"}, c.link);
  key({"network", "connections between nodes"}, c.network);
}

template <class V>
void describe(V& key, PriceSpec& p) {
  key({"provider", "who rents it out", true}, p.provider);
  key({"offer", "what the provider calls it", true}, p.offer);
  key({"device", "the device preset that is rented", true}, p.device);
  key({"devices", "devices the price is for", true, 1, kMostDegree}, p.devices);
  key({"market", "on-demand, or spot: can be preempted"}, p.market);
  key({"per_hour", "price per hour of all these devices", true}, p.per_hour);
  key({"date", "date of the price", true}, p.date);
  key({"source", "where the price is published", true}, p.source);
  key({"network", "the network between several of them is known"}, p.network);
}

template <class V>
void describe(V& key, Sections& s) {
  key({"model", "the decoder's shape"}, s.model);
  key({"batch", "what one step reads"}, s.batch);
  key({"train", "how it is trained"}, s.train);
  key({"data", "what it is trained on"}, s.data);
  key({"checkpoint", "when its state is saved"}, s.checkpoint);
  key({"layout", "how it is spread over ranks"}, s.layout);
  key({"cluster", "what it runs on"}, s.cluster);
  key({"device", "one device, in a device file"}, s.device);
  key({"price", "prices"}, s.price);
}

constexpr Key kDescription{"description", "description of the file, in one line"};

base::Result<Sections> read_sections(const Value& document) {
  Sections sections;
  Reader reader(document, "");
  std::string description;
  reader(kDescription, description);
  describe(reader, sections);

  std::vector<std::string> wider;
  for (const KeyDoc& doc : all_keys()) wider.push_back(doc.path);
  ASSAY_TRY_VOID(reader.finish(wider));

  for (PriceSpec& price : sections.price) {
    for (base::Money* amount : {&price.per_hour.low, &price.per_hour.high}) {
      *amount = base::Money(amount->micros(), amount->currency(), price.date);
    }
  }
  return sections;
}

// Visitors take the section by reference because Reader writes to it; these two only look.
template <class T>
base::Json section_json(const T& section) {
  T copy = section;
  JsonWriter writer;
  describe(writer, copy);
  return writer.take();
}

template <class T>
std::vector<KeyRow> section_rows(const T& section) {
  T copy = section;
  RowWriter writer("");
  describe(writer, copy);
  return writer.take();
}

#define ASSAY_SECTION(T)                         \
  template base::Json section_json<T>(const T&); \
  template std::vector<KeyRow> section_rows<T>(const T&)
ASSAY_SECTION(ModelSpec);
ASSAY_SECTION(BatchSpec);
ASSAY_SECTION(TrainSpec);
ASSAY_SECTION(DataSpec);
ASSAY_SECTION(CheckpointSpec);
ASSAY_SECTION(LayoutSpec);
ASSAY_SECTION(ClusterSpec);
ASSAY_SECTION(DeviceSpec);
ASSAY_SECTION(PriceSpec);
#undef ASSAY_SECTION

std::vector<KeyDoc> all_keys() {
  Sections sections;
  KeyLister lister("");
  lister.extends("what the whole file starts from");
  std::optional<std::string> description;
  lister(kDescription, description);
  describe(lister, sections);
  // A list of tables is shown by the keys of one of its tables.
  std::vector<KeyDoc> keys = lister.take();
  std::erase_if(keys, [](const KeyDoc& key) { return key.path == "price"; });
  PriceSpec price;
  KeyLister price_lister("price");
  describe(price_lister, price);
  for (KeyDoc& key : price_lister.take()) keys.push_back(std::move(key));
  return keys;
}

std::vector<std::string> override_keys() {
  std::vector<std::string> keys;
  for (const KeyDoc& key : all_keys()) {
    if (!key.path.starts_with("price.")) keys.push_back(key.path + "=");
  }
  return keys;
}

}  // namespace assay::spec
