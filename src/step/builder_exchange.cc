// Communication during the passes: weights are gathered before they are used, if ranks keep only a
// part of them (ZeRO 3), and gradients are exchanged after they are computed.
//
// Weights. gather_order.h says which unit is gathered when. The units that a step uses first are
// present when it begins: the previous step has gathered them while it updated the rest; before the
// first step of a run, Program::prologue does.
//
// Gradients. A micro-batch's gradients of a unit are written to a separate buffer, of which blocks
// again have two; each data rank gets its part from every rank, and adds them in the order of the
// micro-batches, (((first + second) + third) + …), to what earlier ones left. Gradients of
// different micro-batches are added nowhere else, so sums have the same bits however micro-batches
// are distributed over ranks and time. The parts of a unit are in flight while the next unit is
// computed; except with Muon, whose matrices share one buffer: their exchange ends before the next
// block's gradients are computed.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "step/builder.h"

namespace assay::step {
namespace {

bool in_block(const Unit& unit) {
  return unit.layer != kNoLayer;
}

}  // namespace

View Builder::shared(const std::string& name, std::int64_t elements, Dtype type, Storage storage) {
  if (!sink_.unrolls()) return {sink_.add({{}, storage, type, elements}), 0, 1, elements, elements};
  const auto [known, is_new] = shared_.try_emplace(name);
  if (is_new) {
    known->second = {sink_.add({name, storage, type, elements}), 0, 1, elements, elements};
  }
  return known->second;
}

// The units of blocks alternate between two buffers, and so do those of experts; units before and
// after the blocks have their own.
std::string Builder::place_of(std::int32_t index, const char* what) const {
  const Unit& u = unit(index);
  if (!in_block(u)) return fmt::format("{} {}", u.name, what);
  return fmt::format("{}{} {}", u.experts ? "expert " : "", what, index % 2);
}

// Large enough for any unit that uses this buffer.
std::int64_t Builder::room_of(std::int32_t index) const {
  const Unit& u = unit(index);
  return in_block(u) ? block_room_[u.experts ? 1 : 0] : u.elements;
}

// Large enough to receive this rank's part from every rank.
std::int64_t Builder::received_room_of(std::int32_t index) const {
  const Unit& u = unit(index);
  return data_ranks(index) * (in_block(u) ? block_part_[u.experts ? 1 : 0] : u.part.count);
}

std::int64_t Builder::data_ranks(std::int32_t index) const {
  return program_.choices.layout.along(unit(index).data).ranks;
}

void Builder::measure_places() {
  for (const Unit& u : program_.units) {
    if (!in_block(u)) continue;
    std::int64_t& room = block_room_[u.experts ? 1 : 0];
    std::int64_t& part = block_part_[u.experts ? 1 : 0];
    room = std::max(room, u.elements);
    part = std::max(part, u.part.count);
  }
}

Op Builder::issue(Op op) {
  op.ticket = tickets_++;
  place(op);
  sink_.add(op, times_);
  return op;
}

// In the same phase as the issue, so that executing only one phase includes both.
Op Builder::wait(const Op& issued) {
  Op op = issued;
  op.kind = OpKind::kWait;
  sink_.add(op, times_);
  return op;
}

// For a block's unit: the buffer it was last gathered into; empty if it never was.
std::string Builder::gathered_place(std::int32_t index) const {
  if (!in_block(unit(index))) return place_of(index, "gathered");
  const int place = gather_order_.block_place(index);
  return place < 0 ? "" : fmt::format("gathered {}", place);
}

View Builder::gathered(std::int32_t index) {
  const Dtype type = program_.choices.numerics.weights;
  const bool of_block = in_block(unit(index));
  // All units of blocks share these buffers, experts and the rest.
  const std::int64_t room =
      of_block ? std::max(block_room_[0], block_room_[1]) : unit(index).elements;
  return shared(gathered_place(index), room, type,
                of_block ? Storage::kGathered : Storage::kActivations);
}

View Builder::weight(const Parameter& p) const {
  if (!sink_.unrolls()) return {weights_, p.offset, p.rows, p.cols, p.cols};
  if (!unit(p.unit).gathered) return program_.weight(p);
  const auto place = shared_.find(gathered_place(p.unit));
  ASSAY_CHECK(place != shared_.end(), "a unit must be gathered before its weights are used");
  return {place->second.buffer, p.offset, p.rows, p.cols, p.cols};
}

bool Builder::gathers() const {
  return sink_.unrolls() && program_.choices.layout.gathers_weights();
}

void Builder::plan_uses(const std::vector<std::int32_t>& units) {
  if (!gathers()) return;
  for (const std::int32_t index : units) {
    if (unit(index).gathered) gather_order_.plan(index, micro_);
  }
}

Op Builder::issue_gather(const GatherOrder::Use& use) {
  const Unit& u = unit(use.unit);
  const View own{u.weights, 0, 1, u.own.count, u.own.count};
  const std::int32_t micro = std::exchange(micro_, use.micro);
  const std::int32_t layer = std::exchange(layer_, u.layer);
  const View to = gathered(use.unit).columns(0, u.elements);
  Op issued = issue({.kind = OpKind::kAllGather,
                     .part = ModelPart::kAllGroups,
                     .in = {own},
                     .out = {to},
                     .axis = u.shard,
                     .unit = use.unit});
  micro_ = micro;
  layer_ = layer;
  return issued;
}

void Builder::use(std::int32_t index) {
  if (!gathers() || !unit(index).gathered) return;
  gather_order_.use(index, micro_, [this](const GatherOrder::Use& use) {
    gathering_[use.unit] = issue_gather(use);
  });
  if (const auto issued = gathering_.find(index); issued != gathering_.end()) {
    wait(issued->second);
    gathering_.erase(issued);
  }
}

void Builder::begin_with_gathered() {
  if (!gathers()) return;
  for (const GatherOrder::Use& use : gather_order_.begin_with_gathered()) gathered(use.unit);
}

bool Builder::is_gathered_first(std::int32_t index) const {
  return std::ranges::find(gather_order_.first_uses(), index, &GatherOrder::Use::unit) !=
         gather_order_.first_uses().end();
}

// Belongs to the forward phase, though one step early: executing only that phase leaves the weights
// in the state in which it found them.
void Builder::gather_for_next_step(std::int32_t index) {
  const auto& first = gather_order_.first_uses();
  const auto use = std::ranges::find(first, index, &GatherOrder::Use::unit);
  if (use == first.end()) return;
  const Phase phase = std::exchange(phase_, Phase::kForward);
  gather_order_.gathered_first(index);
  program_.prologue.push_back(issue_gather(*use));
  phase_ = phase;
}

void Builder::finish_gathers_for_next_step() {
  const std::vector<Op> issued = program_.prologue;
  for (const Op& op : issued) program_.prologue.push_back(wait(op));
}

// The first micro-batch of a single rank has nothing to be added to.
bool Builder::writes_directly(std::int32_t index) const {
  return data_ranks(index) == 1 && micro_ == 0;
}

View Builder::own_gradients(std::int32_t index, bool head) {
  const Unit& u = unit(index);
  return u.in_own(head ? u.head_gradients : u.gradients, u.part);
}

// A single rank adds gradients as soon as they are computed, so blocks need one buffer, not two.
// Muon's matrices and the rest of their block are computed at the same time.
View Builder::gradient_place(std::int32_t index, bool head) {
  const Unit& u = unit(index);
  if (data_ranks(index) == 1 && in_block(u)) {
    const char* name = u.whole_matrices ? "gradients of matrices" : "gradients";
    return shared(u.experts ? "gradients of experts" : name, room_of(index),
                  program_.choices.numerics.gradients, Storage::kActivations);
  }
  return shared(place_of(index, head ? "head gradients" : "gradients"), room_of(index),
                program_.choices.numerics.gradients, Storage::kActivations);
}

View Builder::gradient(const Parameter& p, bool head) {
  // The padding rows of a table have gradients, too: zeros.
  const std::int64_t rows = p.part == ModelPart::kEmbedding ? p.rows + p.padding_rows : p.rows;
  if (!sink_.unrolls()) return {gradients_, p.offset, rows, p.cols, p.cols};
  if (writes_directly(p.unit)) {
    const Unit& u = unit(p.unit);
    return {head ? u.head_gradients : u.gradients, p.offset, rows, p.cols, p.cols};
  }
  const View place = gradient_place(p.unit, head);
  // Gradients of another unit may still be in flight from this buffer.
  const auto in_the_way = [&](const Pending& pending) {
    return pending.issued.in[0].buffer == place.buffer;
  };
  while (std::any_of(pending_.begin(), pending_.end(), in_the_way)) finish_oldest();
  return {place.buffer, p.offset, rows, p.cols, p.cols};
}

void Builder::fold(const View& addends, std::int32_t index, bool head) {
  Op op{.kind = OpKind::kFold,
        .part = ModelPart::kAllGroups,
        .in = {addends},
        .out = {own_gradients(index, head)},
        .unit = index};
  op.adds = micro_ > 0 ? 1 : 0;
  if (addends.elements() > 0) emit(std::move(op));
}

void Builder::finish_gradients(std::int32_t index, bool head) {
  if (defers_) return make_weight_gradient([=, this] { finish_gradients(index, head); });
  if (sink_.unrolls()) exchange_gradients(index, head);
}

void Builder::exchange_gradients(std::int32_t index, bool head) {
  if (writes_directly(index)) return;
  const Unit& u = unit(index);
  const std::int64_t ranks = data_ranks(index);
  const View made = gradient_place(index, head).columns(0, u.elements);
  if (ranks == 1) return fold(made, index, head);
  View received =
      shared(place_of(index, head ? "received head gradients" : "received gradients"),
             received_room_of(index), program_.choices.numerics.gradients, Storage::kActivations);
  received = {received.buffer, 0, ranks, u.part.count, u.part.count};
  pending_.push_back({issue({.kind = OpKind::kAllToAll,
                             .part = ModelPart::kAllGroups,
                             .in = {made},
                             .out = {received},
                             .axis = u.data,
                             .unit = index}),
                      head});
}

void Builder::finish_oldest() {
  const Pending oldest = pending_.front();
  pending_.pop_front();
  const std::int32_t micro = std::exchange(micro_, oldest.issued.micro);
  const std::int32_t layer = std::exchange(layer_, oldest.issued.layer);
  wait(oldest.issued);
  fold(oldest.issued.out[0], oldest.issued.unit, oldest.head);
  micro_ = micro;
  layer_ = layer;
}

bool Builder::is_in_flight(std::int32_t index) const {
  return std::ranges::any_of(pending_, [&](const Pending& p) { return p.issued.unit == index; });
}

void Builder::finish_exchanges() {
  while (!pending_.empty()) finish_oldest();
}

}  // namespace assay::step
