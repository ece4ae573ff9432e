// What data sheets do not say about links: latencies, and the share of a nominal bandwidth that
// collectives reach. Every measured figure in src/plan/network is
// here, and nowhere else, so that a calibration can replace it as a whole.
//
// Sources, by the letter that stands behind each line:
//
// N: NCCL's own tuning model, src/graph/tuning.cc of 2.21 and later (public): what NCCL decides by.
//
// T: NCCL's table of links, src/graph/topo.h, over the data sheet's bandwidth.
//
// M: measured with nccl-tests, or in training where it says so.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace assay::plan {

enum class Protocol : std::uint8_t {
  kLl,      // 4 bytes of data and 4 of flag: quick, half the bandwidth
  kLl128,   // 120 bytes of data and 8 of flag: needs NVLink, which keeps stores in order
  kSimple,  // data, then a fence: slow to begin with, all the bandwidth
};
inline constexpr std::size_t kProtocols = 3;

// Microseconds for LL, LL128, Simple.
using ProtocolMicros = std::array<double, kProtocols>;

// What one hop takes over one kind of link.
struct HopLatency {
  ProtocolMicros ring;
  ProtocolMicros tree;
};

enum class LinkGeneration : std::uint8_t { kAmpere, kHopper, kBlackwell };
inline constexpr std::size_t kLinkGenerations = 3;

// The most that LL reaches, in GB/s: processors poll its flags, whatever the link could do.
struct LlLimit {
  double one_node;
  double two_nodes;
  double more_nodes;
};

struct NetworkConstants {
  // Before the first byte moves, us.
  ProtocolMicros ring_base = {6.6, 14.0, 8.4};  // N
  ProtocolMicros tree_base = {6.8, 14.0, 8.4};  // N
  // Per hop, us.
  HopLatency nvlink = {.ring = {0.6, 1.9, 3.4}, .tree = {0.6, 1.25, 4.0}};    // N
  HopLatency pcie = {.ring = {1.0, 2.5, 5.7}, .tree = {1.0, 1.9, 4.0}};       // N
  HopLatency network = {.ring = {2.7, 4.0, 14.0}, .tree = {5.0, 8.5, 14.0}};  // N
  double nvls_us = 25.0;                                                      // N: whole, in a node
  double nvls_tree_network_us = 20.9;                                         // N: per level
  // For each message more that a rank has in flight, us.
  double post_inside_us = 0.6;   // N: LL's hop over NVLink; channels take turns
  double post_network_us = 1.0;  // N: what a proxy thread needs to post one, on Intel

  // The part of a link's bandwidth that is left, by protocol and algorithm.
  std::array<double, kProtocols> ring_share = {0.5, 0.92, 1.0};               // N
  std::array<double, kProtocols> tree_share = {1 / 3.8, 0.92 * 7 / 9, 0.92};  // N: in one node
  double tree_ll128_share_of_nodes = 0.92 * 120 / 128;                        // N: over several
  // By generation: Ampere, Hopper, Blackwell.
  std::array<LlLimit, kLinkGenerations> ll_limit = {
      {{87.7, 22.5, 19.0}, {141.0, 45.0, 35.0}, {282.0, 90.0, 70.0}}};                          // N
  std::array<double, kLinkGenerations> nvls_share = {0.0, 0.85, 0.74};                          // N
  std::array<double, kLinkGenerations> nvlink_share = {240.0 / 300, 370.8 / 450, 722.0 / 900};  // T
  // Bridges between cards: 115 GB/s of 300 on a pair of H100 PCIe (M).
  double nvlink_bridge_share = 0.385;
  // From card to card through a host's root complex: 20 GB/s of 32 between pairs of A100 (M).
  // NCCL's table has 0.75 to 0.78, for cards below one switch.
  double pcie_share = 0.625;
  // GB/s in all from card to card through the link between two sockets: 8 x H100 NVL reached 24 to
  // 30 in training (M); NCCL's table has 6 to 40, by processor (T).
  double between_sockets = 27.0;
  // More cards than this do not hang on one socket, unless the cluster says otherwise.
  std::int64_t cards_per_socket = 4;

  // 4 nodes of 8 x H100 with 3.2 Tb/s reached 331 GB/s of 400 (M).
  double infiniband_share = 0.83;
  // p4d reached 30 GB/s of 50 in 2022 (NVIDIA/nccl#527); plugins have become better since.
  double efa_share = 0.7;
  // TCP, copied through the host's memory; an assumption.
  double ethernet_share = 0.7;
};

}  // namespace assay::plan
