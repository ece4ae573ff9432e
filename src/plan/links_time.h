// How fast the rings of a layout are, in training, where only a card's link and network are known:
// the closed form for searches and rows. plan/network prices single collectives of a cluster that
// is described as a whole.
#pragma once

#include "plan/constants.h"
#include "plan/work.h"

namespace assay::plan {

// Sets what a node's own links do, by the nominal bandwidth that each of its cards has in one
// direction, bytes per second; per_node is set already. `everywhere`: NVLink connects all of them.
// `one_socket`: all hang on the same, however many they are.
void set_inside(Links& links, double nominal, bool everywhere, bool one_socket);

// A node's host threads, where they may run on the wrong one of two sockets.
void set_threads(Links& links, double of_node);

struct RingPace {
  double bandwidth = 0;  // bytes per second that pass a rank
  double latency = 0;    // seconds of one pass around, reducing or gathering
};

// A ring over `ranks` of which each is `apart` from the next: what is innermost has 1.
RingPace ring_pace(double ranks, double apart, const Links& links, const Constants& constants);

// Inside a node, per card: to one other, and to all others at once.
double send_bandwidth(const Links& links, const Constants& constants);
double all_to_all_bandwidth(const Links& links, const Constants& constants);

}  // namespace assay::plan
