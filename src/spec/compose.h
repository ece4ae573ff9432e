// Composition: a document, what it extends, and the command line's --set, merged into one document.
//
//   extends = "llama3-8b"      at the top of a file: start from that whole document
//   [model] extends = "…"      in a section: start from that document's section of the same name
//   --set model.layers=4       written over the file
//
// A name without "/" and ".toml" is a preset; anything else is a file, relative to the file that
// names it. The nearer definition wins. A section with its own `extends` inherits nothing from the
// same section of the document that its file extends: the result would be a mixture that neither
// file describes.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "spec/value.h"

namespace assay::spec {

struct ComposeOptions {
  std::span<const std::string> overrides;  // "model.layers=4"
  std::function<Value()> this_machine;     // makes the document of the preset `this-machine`
};

struct Composed {
  std::string name;  // the preset's name, or the file's without .toml
  Value document;    // no `extends` left
};

// `reference` is a preset's name, a path, or "-" for standard input. It may be a pipe, since the
// user named it; files that documents extend may not.
base::Result<Composed> compose(std::string_view reference, const ComposeOptions& options);

// Whether `extends` is allowed in this section; "" is the whole file.
bool may_extend(std::string_view section);

}  // namespace assay::spec
