// Slurm's compressed lists: host names ("gpu[01-03,7]-ib,login") and tasks per node ("2(x3),1").
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace assay::control {

// The first host of a list; nothing if the text is not a valid list.
std::optional<std::string> first_host(std::string_view list);

// The number of tasks on the node with this index; nothing if the text is not a valid list or has
// fewer nodes.
std::optional<int> tasks_on_node(std::string_view tasks_per_node, int node);

}  // namespace assay::control
