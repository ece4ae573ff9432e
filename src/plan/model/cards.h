// Accelerators by their data sheets, for rows and jobs that only name a card. Nothing
// here is fitted.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "base/units.h"
#include "plan/model/work.h"

namespace assay::plan {

struct CardSheet {
  std::string_view name;
  Card card;
  // Per card and direction, by default.
  base::BytesPerSecond link;     // NVLink's, or PCIe's for a card without
  base::BytesPerSecond network;  // a card's share of its node's
  std::int64_t domain = 0;       // cards that NVLink connects beyond a node; 0: those of a node
};

std::span<const CardSheet> card_table();

// By the table's name, as rows spell it ("A100-SXM4-80GB"), or by any that has the model as a
// word, as those of drivers have ("NVIDIA H100 80GB HBM3").
const CardSheet* find_card(std::string_view name);
std::optional<Card> card_of(std::string_view name);

// How many cards a bridge of NVLink connects: those of "H100 NVL" and "H200-NVL4", which are cards
// for slots. 0: none. Other names with NVL are of boards and domains: "B300-NVL16", "GB200 NVL72".
std::int64_t bridged_cards(std::string_view name);

// Whether it multiplies mxfp8, or nvfp4: with a scale for each block of a row. The fp4 of AMD's
// cards is another one.
bool has_block_scales(const Card& card, bool nvfp4);

}  // namespace assay::plan
