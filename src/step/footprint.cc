#include "step/footprint.h"

#include <algorithm>
#include <utility>

namespace assay::step {
namespace {

constexpr std::int32_t kRepeated = 4;

// "layers.12.mlp" is of kind "layers.mlp".
std::string kind_of(const Unit& unit) {
  if (unit.layer == kNoLayer) return unit.name;
  const std::size_t from = unit.name.find('.');
  const std::size_t to = unit.name.find('.', from + 1);
  return unit.name.substr(0, from) + (to == std::string::npos ? "" : unit.name.substr(to));
}

// Losses have one row per micro-batch, so their size is a multiple of the number of micro-batches.
bool is_of_losses(const Op& op) {
  return op.phase == Phase::kOptimizer && op.part == ModelPart::kLoss;
}

class Counter {
 public:
  // `micros`: of the step; the program may have unrolled fewer.
  Counter(const Program& program, std::int64_t micros)
      : p_(program), micros_(micros), left_out_(micros - program.choices.accumulate) {}

  Footprint count() {
    Footprint result{.choices = p_.choices};
    result.choices.accumulate = micros_;
    result.units = units();
    for (const Op& op : p_.ops) {
      const std::int64_t times = times_of(op);
      result.flops += static_cast<double>(times) * op.flops;
      if (op.kind == OpKind::kFold) result.folded_bytes += static_cast<double>(times) * moved(op);
      if (op.is_exchange() && op.kind != OpKind::kWait) add(op, times, result.exchanges);
    }
    return result;
  }

 private:
  [[nodiscard]] std::int64_t times_of(const Op& op) const {
    return op.phase != Phase::kOptimizer && op.micro == kRepeated ? 1 + left_out_ : 1;
  }

  [[nodiscard]] double moved(const Op& op) const {
    const std::int64_t sum = p_.bytes_of(op.out[0]);
    return static_cast<double>(p_.bytes_of(op.in[0]) + sum + (op.adds_to(0) ? sum : 0));
  }

  // The unit concerned: as the op says, or else by what it sends.
  [[nodiscard]] const Unit* unit_of(const Op& op) const {
    if (op.unit >= 0) return &p_.units[static_cast<std::size_t>(op.unit)];
    const BufferId buffer = (op.in.empty() ? op.out : op.in)[0].buffer;
    const auto has = [&](const Unit& unit) {
      return buffer == unit.gradients || buffer == unit.head_gradients || buffer == unit.weights;
    };
    const auto found = std::find_if(p_.units.begin(), p_.units.end(), has);
    return found == p_.units.end() ? nullptr : &*found;
  }

  void add(const Op& op, std::int64_t times, std::vector<CountedExchange>& list) const {
    CountedExchange one = counted_exchange(op, p_.buffers, p_.choices.layout, times);
    if (const Unit* unit = unit_of(op)) one.units = kind_of(*unit);
    if (is_of_losses(op)) one.elements = one.elements / p_.choices.accumulate * micros_;
    add_calls(std::move(one), list);
  }

  [[nodiscard]] std::vector<UnitKind> units() const {
    std::vector<UnitKind> kinds;
    std::vector<std::size_t> kind_of_unit;
    for (const Unit& unit : p_.units) {
      const std::string name = kind_of(unit);
      auto kind = std::find_if(kinds.begin(), kinds.end(),
                               [&](const UnitKind& known) { return known.name == name; });
      if (kind == kinds.end()) {
        kind = kinds.insert(kind, {.name = name, .whole_matrices = unit.whole_matrices});
      }
      kind_of_unit.push_back(static_cast<std::size_t>(kind - kinds.begin()));
      ++kind->count;
      kind->elements += unit.elements;
      kind->elements_each = std::max(kind->elements_each, unit.elements);
    }
    for (const Parameter& parameter : p_.parameters) {
      auto& parts = kinds[kind_of_unit[static_cast<std::size_t>(parameter.unit)]].parts;
      const std::string_view part = to_text(parameter.part);
      if (std::find(parts.begin(), parts.end(), part) == parts.end()) parts.push_back(part);
    }
    return kinds;
  }

  const Program& p_;
  std::int64_t micros_;
  std::int64_t left_out_;
};

// Adds the rows that were left out to the buffers with one row per micro-batch.
void lengthen_losses(Program& p, std::int64_t micros) {
  std::vector<BufferId> lengthened;
  for (const Op& op : p.ops) {
    if (!is_of_losses(op) || op.kind == OpKind::kWait) continue;
    for (const auto* views : {&op.in, &op.out}) {
      for (const View& view : *views) {
        const bool known =
            std::find(lengthened.begin(), lengthened.end(), view.buffer) != lengthened.end();
        if (known || view.buffer == p.scalars.buffer) continue;
        lengthened.push_back(view.buffer);
        std::int64_t& elements = p.buffers[static_cast<std::size_t>(view.buffer)].elements;
        elements = elements / p.choices.accumulate * micros;
      }
    }
  }
}

}  // namespace

std::int64_t Footprint::exchanged_bytes() const {
  std::int64_t sum = 0;
  for (const CountedExchange& one : exchanges) sum += one.calls * one.bytes();
  return sum;
}

base::Result<Footprint> footprint_of(const spec::ModelSpec& model, const Choices& choices) {
  Choices unrolled = choices;
  // In a pipeline, which micro-batches overlap depends on their number.
  if (choices.layout.pipeline.ranks == 1 && choices.accumulate > kUnrolledMicros) {
    // Micro-batches alternate between some buffers, and the last one is unlike the others.
    unrolled.accumulate = kUnrolledMicros + (choices.accumulate - kUnrolledMicros) % 2;
  }
  ASSAY_TRY(Program program, build(model, unrolled));
  Footprint result = Counter(program, choices.accumulate).count();
  if (unrolled.accumulate < choices.accumulate) lengthen_losses(program, choices.accumulate);
  result.memory = plan_memory(program);
  result.memory.offset.clear();
  return result;
}

Footprint footprint_of(const Program& program, const MemoryPlan& memory) {
  Footprint result = Counter(program, program.choices.accumulate).count();
  result.memory = memory;
  result.memory.offset.clear();
  return result;
}

}  // namespace assay::step
