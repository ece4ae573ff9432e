// The catalogue of presets: the files of presets/, compiled into the program.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/embedded_file.h"

namespace assay::spec {

enum class Kind { kModel, kDevice, kCluster, kLayout, kPrices, kJob };

std::string_view to_text(Kind kind);       // "model", "prices", …
std::string_view kind_plural(Kind kind);   // "models", "prices", …: also the folder in presets/
std::string_view kind_section(Kind kind);  // "model", "price", …: what a file of it has; none: job

// In the order in which lists show them.
std::span<const Kind> all_kinds();

struct Preset {
  std::string name;  // the file's name without .toml; unique over all kinds
  Kind kind;
  std::string source;         // "presets/models/tiny.toml", for error messages
  std::string_view contents;  // empty for kThisMachine, which is detected
};

// The cluster preset that is detected at run time.
inline constexpr std::string_view kThisMachine = "this-machine";

// All presets, by kind and then in natural order (d12 before d100).
const std::vector<Preset>& presets();

// Null if there is no preset of that name.
const Preset* find_preset(std::string_view name);

// Names of one kind, for suggestions and completion; of every kind without an argument.
std::vector<std::string> preset_names(Kind kind);
std::vector<std::string> preset_names();

// The generated table (cmake/EmbedFiles.cmake).
std::span<const base::EmbeddedFile> embedded_files();

}  // namespace assay::spec
