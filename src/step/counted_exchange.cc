#include "step/counted_exchange.h"

#include <algorithm>
#include <array>
#include <utility>

namespace assay::step {
namespace {

const Buffer& buffer_of(const View& view, const std::vector<Buffer>& buffers) {
  return buffers[static_cast<std::size_t>(view.buffer)];
}

Exchanged exchanged_by(const Op& op, const std::vector<Buffer>& buffers) {
  switch (buffer_of(op.in.empty() ? op.out[0] : op.in[0], buffers).storage) {
    case Storage::kWeights:
      return Exchanged::kWeights;
    case Storage::kGradients:
      return Exchanged::kGradients;
    case Storage::kScalars:
      return Exchanged::kScalars;
    default:
      return op.unit >= 0 ? Exchanged::kGradients : Exchanged::kActivations;
  }
}

}  // namespace

std::string_view to_text(Exchanged what) {
  constexpr std::array<std::string_view, 4> kNames = {"weights", "gradients", "activations",
                                                      "losses, norm"};
  return kNames[static_cast<std::size_t>(what)];
}

bool CountedExchange::same_but_calls(const CountedExchange& other) const {
  return kind == other.kind && axis == other.axis && phase == other.phase && what == other.what &&
         type == other.type && elements == other.elements && units == other.units;
}

CountedExchange counted_exchange(const Op& op, const std::vector<Buffer>& buffers,
                                 const Layout& layout, std::int64_t calls) {
  return {.kind = op.kind,
          .axis = op.axis,
          .ranks = layout.along(op.axis).ranks,
          .phase = op.phase,
          .what = exchanged_by(op, buffers),
          .type = buffer_of(op.in.empty() ? op.out[0] : op.in[0], buffers).type,
          .elements = op.exchanged_elements(),
          .calls = calls};
}

std::size_t add_calls(CountedExchange one, std::vector<CountedExchange>& list) {
  const auto same = std::find_if(list.begin(), list.end(), [&](const CountedExchange& known) {
    return known.same_but_calls(one);
  });
  const auto at = static_cast<std::size_t>(same - list.begin());
  if (same == list.end()) {
    list.push_back(std::move(one));
  } else {
    same->calls += one.calls;
  }
  return at;
}

}  // namespace assay::step
