// Numbers formatted for people: "1,234.5", "12.3 ms", "4.10 GiB", "9.2 × faster".
#pragma once

#include <string>
#include <string_view>

namespace assay::report {

// Four significant digits, or all digits before the point, in groups of three; an exponent only for
// numbers that would otherwise have many zeros.
std::string figure(double value);
// The same with a sign.
std::string signed_figure(double value);

// With its unit: "12.3 ms", "4.10 GiB", "41.2 %", "9,120 tokens/s".
std::string amount(double value, std::string_view unit);

// "$12.34", "$1,234".
std::string dollars_text(double value);

// "+2.00 %", "-0.05 %", "+1,234 %".
std::string signed_percent(double percent);

// A change in percent as a ratio, with its meaning: for times "1.02 × slower", "9.2 × faster"; for
// other quantities "9.2 × as much", "9.2 × less". Empty if there is no ratio: -100 % or below.
std::string ratio_text(double percent, bool is_time);

}  // namespace assay::report
