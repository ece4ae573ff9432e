// Work for tests: a dense model as it is trained, and any that could be.
#pragma once

#include <rapidcheck.h>

#include <cmath>

#include "plan/model/cards.h"
#include "plan/model/cluster_links.h"
#include "plan/model/work.h"
#include "plan/testing/clusters.h"

namespace assay::plan::testing {

// Widths that follow from others, and parameters.
inline void complete(Shape& s) {
  s.qkv = (s.heads + 2 * s.kv_heads) * s.head_dim;
  s.attention_out = s.heads * s.head_dim;
  const double attention = s.dim * (s.qkv + s.attention_out);
  const double mlp = s.mlp_matrices * s.dim;
  s.body_parameters = s.layers * attention + (s.layers - s.moe_layers) * mlp * s.ffn +
                      s.moe_layers * mlp * (s.experts * s.expert_ffn + s.shared_ffn);
  s.parameters = s.body_parameters + s.vocab * s.dim * (s.tied ? 1 : 2);
}

inline Shape llama_8b() {
  Shape s{.layers = 32,
          .dim = 4096,
          .heads = 32,
          .kv_heads = 8,
          .head_dim = 128,
          .ffn = 14336,
          .vocab = 128256};
  complete(s);
  return s;
}

// Of 8 H100 on one board.
inline Work llama_8b_on_h100() {
  Work work;
  work.shape = llama_8b();
  work.degrees = {.dp = 1, .fsdp = 8, .ranks = 8};
  work.batch = {.sequence = 8192, .micro_batch = 1, .micros = 2};
  work.card = *card_of("H100-SXM5-80GB");
  work.links =
      *links_of(with_network(one_node(8, spec::LinkKind::kNvswitch, 450), /*nodes=*/1, 400));
  work.software = software_of(Framework::kTorch, work.card);
  return work;
}

inline Shape any_shape() {
  Shape s;
  s.head_dim = *rc::gen::element(64, 128);
  s.heads = *rc::gen::element(8, 16, 32, 64);
  s.kv_heads = s.heads / *rc::gen::element(1, 4, 8);
  s.dim = s.heads * s.head_dim;
  s.layers = *rc::gen::inRange(1, 128);
  s.ffn = s.dim * *rc::gen::element(2, 3, 4);
  s.mlp_matrices = *rc::gen::element(2, 3);
  s.vocab = *rc::gen::element(8, 32000, 50257, 128256);
  s.ragged_vocab = *rc::gen::arbitrary<bool>();
  s.tied = *rc::gen::arbitrary<bool>();
  if (*rc::gen::arbitrary<bool>()) {
    s.window = 128;
    s.windowed_share = 0.5;
  }
  if (*rc::gen::inRange(0, 3) == 0) {
    s.experts = *rc::gen::element(8, 64, 256);
    s.experts_per_token = *rc::gen::element(1, 2, 8);
    s.expert_ffn = *rc::gen::element(512, 2048, 14336);
    s.shared_ffn = *rc::gen::element(0, 2048);
    s.moe_layers = *rc::gen::inRange(1, static_cast<int>(s.layers) + 1);
  }
  complete(s);
  return s;
}

inline Degrees any_degrees(const Shape& shape) {
  Degrees d;
  d.tp = *rc::gen::element(1, 1, 2, 4, 8);
  d.pp = *rc::gen::element(1, 1, 2, 4, 7);
  d.cp = *rc::gen::element(1, 1, 2);
  d.fsdp = *rc::gen::element(1, 2, 8, 64);
  d.dp = *rc::gen::element(1, 2, 8, 1000);
  d.chunks = d.pp > 1 ? *rc::gen::element(1, 2, 5) : 1;
  d.gpipe = *rc::gen::arbitrary<bool>();
  d.zero_bubble = d.pp > 1 && d.chunks == 1 && !d.gpipe && *rc::gen::arbitrary<bool>();
  d.sequence_parallel = *rc::gen::arbitrary<bool>();
  d.ranks = d.tp * d.pp * d.cp * d.fsdp * d.dp;
  if (shape.is_moe()) {
    d.ep = *rc::gen::element(1, 4, 8);
    d.ep_axis = d.ep > 1 && *rc::gen::arbitrary<bool>();
    if (d.ep_axis) d.ranks *= d.ep;
  }
  return d;
}

inline Software any_software(const Card& card) {
  const auto last = static_cast<int>(framework_names().size());
  Software s = software_of(static_cast<Framework>(*rc::gen::inRange(0, last)), card);
  s.flash = *rc::gen::arbitrary<bool>();
  s.fused = *rc::gen::arbitrary<bool>();
  s.hostless = *rc::gen::arbitrary<bool>();
  s.gathers_once = *rc::gen::arbitrary<bool>();
  s.unbatched_experts = *rc::gen::arbitrary<bool>();
  return s;
}

inline const CardSheet& any_sheet() {
  const auto cards = card_table();
  return cards[*rc::gen::inRange<std::size_t>(0, cards.size())];
}

// Nodes of such cards, however they may be linked.
inline spec::ClusterSpec any_nodes_of(const CardSheet& sheet) {
  using spec::LinkKind;
  const auto kind = *rc::gen::element(LinkKind::kNvswitch, LinkKind::kNvlinkMesh,
                                      LinkKind::kNvlinkGroups, LinkKind::kPcie);
  const int devices = *rc::gen::element(1, 4, 8);
  auto cluster = one_node(devices, kind, sheet.link.count() / kGb,
                          sheet.card.fp8_flops > sheet.card.bf16_flops);
  if (cluster.device.fp8) cluster.device.fp8 = sheet.card.fp8_flops;
  if (kind == LinkKind::kNvlinkGroups) cluster.link.group = 2;
  cluster.link.pcie = base::BytesPerSecond(64 * kGb);
  // Some of its nodes are one domain of NVLink.
  if (kind == LinkKind::kNvswitch && *rc::gen::arbitrary<bool>())
    cluster.link.group = devices * *rc::gen::element(2, 4, 18);
  const auto network = *rc::gen::element(spec::NetworkKind::kInfiniband, spec::NetworkKind::kEfa,
                                         spec::NetworkKind::kEthernet);
  return with_network(cluster, 8, devices * sheet.network.count() / kGb, network);
}

// One node and nothing else.
inline spec::ClusterSpec without_network(spec::ClusterSpec cluster) {
  cluster.nodes = 1;
  cluster.network = {};
  return cluster;
}

// A layout that such a node has room for.
inline void keep_in_node(Work& work, double devices) {
  Degrees& d = work.degrees;
  for (double* degree : {&d.dp, &d.fsdp, &d.pp, &d.cp, &d.ep, &d.tp}) {
    if (d.ranks <= devices) break;
    if (degree == &d.ep && !d.ep_axis) continue;
    d.ranks /= *degree;
    *degree = 1;
  }
  if (d.ep_axis) d.ranks /= d.ep;
  if (std::fmod(d.dp * d.fsdp, d.ep) != 0) d.ep = 1;
  d.ep_axis = false;  // a trait of measured rows, which all have a network
  if (d.pp == 1) d.chunks = 1, d.zero_bubble = false;
}

inline Work any_work_on(const CardSheet& sheet, const spec::ClusterSpec& cluster) {
  Work work;
  work.shape = any_shape();
  work.degrees = any_degrees(work.shape);
  work.batch.sequence = *rc::gen::element(1024, 2048, 8192);
  work.batch.micro_batch = *rc::gen::inRange(1, 17);
  work.batch.micros = *rc::gen::inRange(1, 65);
  work.card = sheet.card;
  work.links = *links_of(cluster);
  if (*rc::gen::inRange(0, 8) == 0) work.links.scarce_threads = *rc::gen::inRange(1, 24);
  work.software = any_software(work.card);
  work.recompute = static_cast<RecomputeKind>(*rc::gen::inRange(0, 5));
  work.fp8 = *rc::gen::arbitrary<bool>();
  work.fp4 = work.fp8 && work.card.fp4_flops.count() > 0 && *rc::gen::arbitrary<bool>();
  work.fp8_by_row = *rc::gen::arbitrary<bool>();
  work.lora = *rc::gen::inRange(0, 4) == 0;
  work.muon = *rc::gen::inRange(0, 4) == 0;
  return work;
}

inline Work any_work() {
  const CardSheet& sheet = any_sheet();
  const spec::ClusterSpec nodes = any_nodes_of(sheet);
  if (*rc::gen::inRange(0, 4) > 0) return any_work_on(sheet, nodes);
  Work work = any_work_on(sheet, without_network(nodes));
  keep_in_node(work, static_cast<double>(nodes.devices_per_node));
  return work;
}

}  // namespace assay::plan::testing
