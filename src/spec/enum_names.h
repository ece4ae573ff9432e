// The names of enum values in TOML and JSON.
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "spec/job.h"

namespace assay::spec {

template <class E>
struct EnumNames;

template <class E>
concept Enum = requires {
  EnumNames<E>::kNames;
};

template <Enum E>
constexpr std::string_view to_text(E value) {
  for (const auto& [name, constant] : EnumNames<E>::kNames) {
    if (constant == value) return name;
  }
  return "?";
}

template <class E, std::size_t N>
using Names = std::array<std::pair<std::string_view, E>, N>;

template <>
struct EnumNames<Norm> {
  static constexpr Names<Norm, 3> kNames = {{{"rmsnorm", Norm::kRmsNorm},
                                             {"rmsnorm-plain", Norm::kRmsNormPlain},
                                             {"layernorm", Norm::kLayerNorm}}};
};
template <>
struct EnumNames<Router> {
  static constexpr Names<Router, 2> kNames = {
      {{"softmax", Router::kSoftmax}, {"sigmoid", Router::kSigmoid}}};
};

template <>
struct EnumNames<QkNorm> {
  static constexpr Names<QkNorm, 3> kNames = {
      {{"none", QkNorm::kNone}, {"plain", QkNorm::kPlain}, {"learned", QkNorm::kLearned}}};
};
template <>
struct EnumNames<Mlp> {
  static constexpr Names<Mlp, 3> kNames = {
      {{"swiglu", Mlp::kSwiglu}, {"gelu", Mlp::kGelu}, {"relu2", Mlp::kRelu2}}};
};
template <>
struct EnumNames<Positions> {
  static constexpr Names<Positions, 2> kNames = {
      {{"rope", Positions::kRope}, {"learned", Positions::kLearned}}};
};
template <>
struct EnumNames<PipelineSchedule> {
  static constexpr Names<PipelineSchedule, 4> kNames = {
      {{"gpipe", PipelineSchedule::kGpipe},
       {"1f1b", PipelineSchedule::k1f1b},
       {"interleaved", PipelineSchedule::kInterleaved},
       {"zb-h1", PipelineSchedule::kZbH1}}};
};
template <>
struct EnumNames<ShardUnit> {
  static constexpr Names<ShardUnit, 2> kNames = {
      {{"block", ShardUnit::kBlock}, {"module", ShardUnit::kModule}}};
};
template <>
struct EnumNames<DeviceKind> {
  static constexpr Names<DeviceKind, 2> kNames = {
      {{"cpu", DeviceKind::kCpu}, {"gpu", DeviceKind::kGpu}}};
};
template <>
struct EnumNames<LinkKind> {
  static constexpr Names<LinkKind, 5> kNames = {{{"none", LinkKind::kNone},
                                                 {"nvswitch", LinkKind::kNvswitch},
                                                 {"nvlink-mesh", LinkKind::kNvlinkMesh},
                                                 {"nvlink-groups", LinkKind::kNvlinkGroups},
                                                 {"pcie", LinkKind::kPcie}}};
};
template <>
struct EnumNames<NetworkKind> {
  static constexpr Names<NetworkKind, 4> kNames = {{{"none", NetworkKind::kNone},
                                                    {"infiniband", NetworkKind::kInfiniband},
                                                    {"efa", NetworkKind::kEfa},
                                                    {"ethernet", NetworkKind::kEthernet}}};
};
template <>
struct EnumNames<Market> {
  static constexpr Names<Market, 2> kNames = {
      {{"on-demand", Market::kOnDemand}, {"spot", Market::kSpot}}};
};
template <>
struct EnumNames<Optimizer> {
  static constexpr Names<Optimizer, 2> kNames = {
      {{"adamw", Optimizer::kAdamw}, {"muon", Optimizer::kMuon}}};
};
template <>
struct EnumNames<Precision> {
  static constexpr Names<Precision, 6> kNames = {{{"fp32", Precision::kFp32},
                                                  {"bf16", Precision::kBf16},
                                                  {"fp16", Precision::kFp16},
                                                  {"fp8", Precision::kFp8},
                                                  {"mxfp8", Precision::kMxfp8},
                                                  {"nvfp4", Precision::kNvfp4}}};
};
template <>
struct EnumNames<Recompute> {
  // Other frameworks use `selective` for what is closest to `cheap`.
  static constexpr Names<Recompute, 6> kNames = {{{"none", Recompute::kNone},
                                                  {"cheap", Recompute::kCheap},
                                                  {"selective", Recompute::kCheap},
                                                  {"ffn", Recompute::kFfn},
                                                  {"full", Recompute::kFull},
                                                  {"auto", Recompute::kAuto}}};
};
template <>
struct EnumNames<Schedule> {
  static constexpr Names<Schedule, 4> kNames = {{{"cosine", Schedule::kCosine},
                                                 {"linear", Schedule::kLinear},
                                                 {"wsd", Schedule::kWsd},
                                                 {"constant", Schedule::kConstant}}};
};
template <>
struct EnumNames<Packing> {
  static constexpr Names<Packing, 2> kNames = {
      {{"stream", Packing::kStream}, {"documents", Packing::kDocuments}}};
};
template <>
struct EnumNames<Mask> {
  static constexpr Names<Mask, 2> kNames = {{{"none", Mask::kNone}, {"document", Mask::kDocument}}};
};
template <>
struct EnumNames<NonFinite> {
  static constexpr Names<NonFinite, 2> kNames = {
      {{"skip", NonFinite::kSkip}, {"stop", NonFinite::kStop}}};
};
template <>
struct EnumNames<base::TokenType> {
  static constexpr Names<base::TokenType, 2> kNames = {
      {{"u16", base::TokenType::kU16}, {"u32", base::TokenType::kU32}}};
};

}  // namespace assay::spec
