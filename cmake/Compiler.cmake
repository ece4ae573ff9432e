# Flags every target gets: warnings as errors, sanitizers when asked for, ccache when present.
add_library(assay_options INTERFACE)
target_compile_options(assay_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Werror
  # Members left at their defaults in designated initialisers are the point of having defaults.
  -Wno-missing-field-initializers
  # gcc 12's flow-based warnings misfire inside std::variant and std::string; the sanitizer builds
  # find the real ones.
  -Wno-maybe-uninitialized -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow
  -fno-omit-frame-pointer)
target_compile_options(assay_options INTERFACE $<$<CONFIG:Debug>:-O1>)
target_include_directories(assay_options INTERFACE ${CMAKE_SOURCE_DIR}/src)

if(ASSAY_SANITIZE)
  target_compile_options(assay_options INTERFACE -fsanitize=${ASSAY_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(assay_options INTERFACE -fsanitize=${ASSAY_SANITIZE})
endif()

find_program(ASSAY_CCACHE ccache)
if(ASSAY_CCACHE)
  # Sloppiness lets ccache see through precompiled headers (ccache manual, "Precompiled headers").
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    ${ASSAY_CCACHE})
  target_compile_options(assay_options INTERFACE -fpch-preprocess)
endif()
