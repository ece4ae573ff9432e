// Numbers formatted for people: "1,234.5", "12.3 ms", "4.10 GiB", "9.2 × faster".
#pragma once

#include <string>
#include <string_view>

#include "base/figure.h"
#include "base/units.h"

namespace assay::report {

using base::figure;
using base::signed_figure;
using base::signed_percent;

// With its unit: "12.3 ms", "4.10 GiB", "41.2 %", "9,120 tokens/s".
std::string amount(double value, std::string_view unit);

// "$12.34", "$1,234".
std::string dollars_text(double value);

// A limit that somebody chose, without the digits of a measurement: "10 min", "1.5 h".
std::string limit_text(base::Seconds limit);

// A change in percent as a ratio, with its meaning: for times "1.02 × slower", "9.2 × faster"; for
// other quantities "9.2 × as much", "9.2 × less". Empty if there is no ratio: -100 % or below.
std::string ratio_text(double percent, bool is_time);

}  // namespace assay::report
