// Numbers as people write them: "1,234.5", "12.3 ms", "4.10 GiB", "9.2 × faster".
#pragma once

#include <string>
#include <string_view>

namespace assay::report {

// Four significant digits, or all digits before the point in groups of three; an exponent only for
// what would otherwise be a row of zeros.
std::string figure(double value);
// The same with a sign.
std::string signed_figure(double value);

// With its unit: "12.3 ms", "4.10 GiB", "41.2 %", "9,120 tokens/s".
std::string amount(double value, std::string_view unit);

// "+2.00 %", "-0.05 %", "+1,234 %".
std::string signed_percent(double percent);

// A change in percent as a ratio, and what it means for a time: "1.02 × slower", "9.2 × faster"; of
// other quantities "9.2 × as much", "9.2 × less". Empty where there is none: -100 % or below.
std::string ratio_text(double percent, bool is_time);

}  // namespace assay::report
