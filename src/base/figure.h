// Numbers that are not of a unit's own type, written for people: the same digits everywhere.
#pragma once

#include <string>

namespace assay::base {

// Four significant digits, or all digits before the point, in groups of three; an exponent only for
// numbers that would otherwise have many zeros.
std::string figure(double value);
// The same with a sign.
std::string signed_figure(double value);
// Every digit that the number was written with, in groups of three before the point: "1,411.6".
std::string exact_figure(double value);
// "+2.00 %", "-0.05 %", "+1,234 %".
std::string signed_percent(double percent);

}  // namespace assay::base
