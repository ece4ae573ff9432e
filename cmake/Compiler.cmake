# Flags every target gets: warnings as errors, sanitizers on request, ccache if present.
set(ASSAY_CODEGEN_FLAGS -fno-omit-frame-pointer)
# A release has symbols and frame pointers, which is what profilers need; line tables would take a
# seventh of the compile time. The sanitized trees have them, for their reports.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CUDA_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1")

# gcc's garbage collector starts at 128 MiB; starting at 1 GiB saves a tenth of the compile time.
add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1048576>)

add_library(assay_options INTERFACE)
target_include_directories(assay_options INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_options(assay_options INTERFACE
  ${ASSAY_CODEGEN_FLAGS}
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Werror
  # Members left at their defaults in designated initialisers are the point of having defaults.
  -Wno-missing-field-initializers)
# gcc 12's flow-based warnings misfire inside std::variant and std::string; the sanitizer builds
# find the real ones.
target_compile_options(assay_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:
  -Wno-maybe-uninitialized -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow>)

function(sanitize target scope kinds)
  target_compile_options(${target} ${scope} -fsanitize=${kinds} -fno-sanitize-recover=all)
  target_link_options(${target} ${scope} -fsanitize=${kinds})
endfunction()
if(ASSAY_SANITIZE)
  sanitize(assay_options INTERFACE ${ASSAY_SANITIZE})
endif()

find_program(ASSAY_CCACHE ccache)
if(ASSAY_CCACHE)
  # Sloppiness lets ccache see through precompiled headers (ccache manual, "Precompiled headers"). With
  # CCACHE_DEPEND what is not in the cache is not preprocessed first, which is a tenth of a cold build.
  # Batches of files name them by absolute paths, so a tree serves later builds at the same path only.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_DEPEND=1
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${ASSAY_CCACHE})
  target_compile_options(assay_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
endif()
