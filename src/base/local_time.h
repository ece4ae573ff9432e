// Points in time in this machine's time zone, for people; JSON and files use UTC (clock.h).
#pragma once

#include <cstdint>
#include <string>

namespace assay::base {

// "2026-11-15 02:58:14"
std::string local_text(std::int64_t wall_ns);
// "14:02" for a time on the day of `now_ns`, else "2026-11-15 14:02".
std::string local_minute_text(std::int64_t wall_ns, std::int64_t now_ns);

}  // namespace assay::base
