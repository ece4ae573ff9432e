// What ranks exchange while they compute: weights before they are used, where ranks keep a part of
// them each (ZeRO 3), and gradients after they are made.
//
// Weights. Units are used in a known order, and two blocks' units have a place at a time: while one
// is computed with, the next is gathered into the other. The two used last are still there when the
// backward pass begins, and when the next micro-batch does. What a step uses first is there when it
// begins: the step before has gathered it while it updated the rest, and before the first step of a
// run Program::prologue does.
//
// Gradients. A micro-batch's gradients of a unit are written to a place of their own, of which
// again blocks have two; each data rank gets its part of every rank's, and adds them in the order
// of the micro-batches, (((first + second) + third) + …), to what earlier ones left. Nothing else
// adds gradients of different micro-batches, so sums have the same bits however micro-batches are
// spread over ranks and over time. The parts of a unit travel while the next unit is computed; but
// with Muon, whose matrices share one place, before the next block's are made.
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
  const auto [known, is_new] = shared_.try_emplace(name);
  if (is_new) {
    known->second = {static_cast<BufferId>(program_.buffers.size()), 0, 1, elements, elements};
    program_.buffers.push_back({name, storage, type, elements});
  }
  return known->second;
}

// Units of blocks take turns, and so do those of experts; what is before and after the blocks has
// its own place.
std::string Builder::place_of(std::int32_t index, const char* what) const {
  const Unit& u = unit(index);
  if (!in_block(u)) return fmt::format("{} {}", u.name, what);
  return fmt::format("{}{} {}", u.experts ? "expert " : "", what, index % 2);
}

// Enough for any unit that has this place.
std::int64_t Builder::room_of(std::int32_t index) const {
  const Unit& u = unit(index);
  return in_block(u) ? block_room_[u.experts ? 1 : 0] : u.elements;
}

// And for this rank's part of it from every rank.
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
  emit(std::move(op));
  return program_.ops.back();
}

void Builder::wait(const Op& issued) {
  Op op = issued;
  op.kind = Kind::kWait;  // of the same phase: whoever executes one phase alone has both
  program_.ops.push_back(std::move(op));
}

// Of a block's unit: the place it was gathered to last; empty if it never was.
std::string Builder::gathered_place(std::int32_t index) const {
  if (!in_block(unit(index))) return place_of(index, "gathered");
  const auto place = block_place_.find(index);
  return place == block_place_.end() ? "" : fmt::format("gathered {}", place->second);
}

View Builder::gathered(std::int32_t index) {
  const Dtype type = program_.choices.numerics.weights;
  const bool of_block = in_block(unit(index));
  // Units of blocks have these places together, experts and the rest.
  const std::int64_t room =
      of_block ? std::max(block_room_[0], block_room_[1]) : unit(index).elements;
  return shared(gathered_place(index), room, type,
                of_block ? Storage::kGathered : Storage::kActivations);
}

View Builder::weight(const Parameter& p) const {
  if (!unit(p.unit).gathered) return program_.weight(p);
  const auto place = shared_.find(gathered_place(p.unit));
  ASSAY_CHECK(place != shared_.end(), "a unit must be gathered before its weights are used");
  return {place->second.buffer, p.offset, p.rows, p.cols, p.cols};
}

void Builder::plan_uses(const std::vector<std::int32_t>& units) {
  for (const std::int32_t index : units) {
    if (!unit(index).gathered) continue;
    if (uses_.empty() || uses_.back().unit != index || uses_.back().micro != micro_) {
      uses_.push_back({index, micro_});
    }
  }
}

bool Builder::is_there(const Use& use) const {
  const auto at = resident_.find(gathered_place(use.unit));
  // Places beside those of blocks hold something else between micro-batches.
  return at != resident_.end() && at->second.unit == use.unit &&
         (in_block(unit(use.unit)) || at->second.micro == use.micro);
}

// Of the two places of blocks, the one that `kept` is not in; if both are free to be taken, the one
// whose weights are used again later.
int Builder::place_beside(std::int32_t kept) const {
  if (kept >= 0 && in_block(unit(kept)) && is_there({kept, 0})) return 1 - block_place_.at(kept);
  const auto next_use = [&](int place) {
    const auto at = resident_.find(fmt::format("gathered {}", place));
    if (at == resident_.end()) return uses_.end();
    return std::ranges::find(uses_, at->second.unit, &Use::unit);
  };
  return next_use(1) > next_use(0) ? 1 : 0;
}

Op Builder::issue_gather(const Use& use) {
  const Unit& u = unit(use.unit);
  const View own{u.weights, 0, 1, u.own.count, u.own.count};
  const std::int32_t micro = std::exchange(micro_, use.micro);
  const std::int32_t layer = std::exchange(layer_, u.layer);
  const View to = gathered(use.unit).columns(0, u.elements);
  Op issued = issue({.kind = Kind::kAllGather,
                     .part = Part::kAllGroups,
                     .in = {own},
                     .out = {to},
                     .axis = u.shard,
                     .unit = use.unit});
  micro_ = micro;
  layer_ = layer;
  return issued;
}

void Builder::gather(const Use& use, std::int32_t beside) {
  if (in_block(unit(use.unit))) block_place_[use.unit] = place_beside(beside);
  gathering_[use.unit] = issue_gather(use);
  resident_[gathered_place(use.unit)] = use;
}

void Builder::use(std::int32_t index) {
  if (!unit(index).gathered) return;
  if (in_use_.unit == index && in_use_.micro == micro_) return;
  ASSAY_CHECK(!uses_.empty() && uses_.front().unit == index, "units must be used as planned");
  const Use now = in_use_ = uses_.front();
  uses_.pop_front();
  if (!is_there(now)) gather(now, uses_.empty() ? -1 : uses_.front().unit);
  // The next one; and tables that are used together, together.
  for (auto next = uses_.begin(); next != uses_.end(); ++next) {
    const bool block = in_block(unit(next->unit));
    // The same unit of another micro-batch has the same place, which is in use.
    if (next->unit == index || (block && next != uses_.begin())) break;
    if (!is_there(*next)) gather(*next, index);
    if (block) break;
  }
  if (const auto issued = gathering_.find(index); issued != gathering_.end()) {
    wait(issued->second);
    gathering_.erase(issued);
  }
}

// What comes before the blocks, and the first block: the second is gathered while that is computed.
void Builder::begin_with_gathered() {
  for (const Use& use : uses_) {
    first_uses_.push_back(use);
    if (in_block(unit(use.unit))) block_place_[use.unit] = 0;
    gathered(use.unit);
    resident_[gathered_place(use.unit)] = use;
    if (in_block(unit(use.unit))) break;
  }
}

bool Builder::is_gathered_first(std::int32_t index) const {
  return std::ranges::find(first_uses_, index, &Use::unit) != first_uses_.end();
}

// Of the forward pass, though a step early: whoever executes that alone leaves behind what it began
// with.
void Builder::gather_for_next_step(std::int32_t index) {
  const auto use = std::ranges::find(first_uses_, index, &Use::unit);
  if (use == first_uses_.end()) return;
  const Phase phase = std::exchange(phase_, Phase::kForward);
  if (in_block(unit(index))) block_place_[index] = 0;
  program_.prologue.push_back(issue_gather(*use));
  phase_ = phase;
}

void Builder::finish_gathers_for_next_step() {
  const std::vector<Op> issued = program_.prologue;
  for (const Op& op : issued) {
    wait(op);
    program_.prologue.push_back(program_.ops.back());
  }
}

// The first micro-batch of a single rank has nothing to be added to.
bool Builder::writes_directly(std::int32_t index) const {
  return data_ranks(index) == 1 && micro_ == 0;
}

View Builder::own_gradients(std::int32_t index, bool head) {
  const Unit& u = unit(index);
  return u.in_own(head ? u.head_gradients : u.gradients, u.part);
}

// One rank adds gradients as soon as they are made, so blocks need one place, not two. Muon's
// matrices and the rest of their block are made at the same time.
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
  const Unit& u = unit(p.unit);
  // The rows that pad a table have gradients, too: zeros.
  const std::int64_t rows = p.part == Part::kEmbedding ? p.rows + p.padding_rows : p.rows;
  if (writes_directly(p.unit)) {
    return {head ? u.head_gradients : u.gradients, p.offset, rows, p.cols, p.cols};
  }
  const View place = gradient_place(p.unit, head);
  // Another unit's may still be on their way from there.
  const auto in_the_way = [&](const Pending& pending) {
    return pending.issued.in[0].buffer == place.buffer;
  };
  while (std::any_of(pending_.begin(), pending_.end(), in_the_way)) finish_oldest();
  return {place.buffer, p.offset, rows, p.cols, p.cols};
}

void Builder::fold(const View& addends, std::int32_t index, bool head) {
  Op op{.kind = Kind::kFold,
        .part = Part::kAllGroups,
        .in = {addends},
        .out = {own_gradients(index, head)},
        .unit = index};
  op.adds = micro_ > 0 ? 1 : 0;
  if (addends.elements() > 0) emit(std::move(op));
}

void Builder::finish_gradients(std::int32_t index, bool head) {
  if (defers_) return make_weight_gradient([=, this] { finish_gradients(index, head); });
  if (writes_directly(index)) return;
  const Unit& u = unit(index);
  const std::int64_t ranks = data_ranks(index);
  const View made = gradient_place(index, head).columns(0, u.elements);
  if (ranks == 1) return fold(made, index, head);
  View received =
      shared(place_of(index, head ? "received head gradients" : "received gradients"),
             received_room_of(index), program_.choices.numerics.gradients, Storage::kActivations);
  received = {received.buffer, 0, ranks, u.part.count, u.part.count};
  pending_.push_back({issue({.kind = Kind::kAllToAll,
                             .part = Part::kAllGroups,
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

bool Builder::is_on_its_way(std::int32_t index) const {
  return std::ranges::any_of(pending_, [&](const Pending& p) { return p.issued.unit == index; });
}

void Builder::finish_exchanges() {
  while (!pending_.empty()) finish_oldest();
}

}  // namespace assay::step
