// Slurm's compressed lists: host names ("gpu[01-03,7]-ib,login") and tasks per node ("2(x3),1").
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace assay::control {

// The first host of a list, or nothing if it is not one.
std::optional<std::string> first_host(std::string_view list);

// How many tasks the node with this index runs, or nothing if the text is no such list or has fewer
// nodes.
std::optional<int> tasks_on_node(std::string_view tasks_per_node, int node);

}  // namespace assay::control
