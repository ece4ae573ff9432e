// Marks what programs see of the library; all else in it is hidden.
#pragma once

#define ASSAY_EXPORTED __attribute__((visibility("default")))
