# version_source(TARGET): compiles the answer of base::version() into TARGET. The commit is looked
# up at every build, and the file is rewritten only when it changed.
function(version_source target)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/version.cc)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  add_custom_target(${target}_version
    COMMAND ${CMAKE_COMMAND}
      -DOUTPUT=${output} -DSOURCE_DIR=${CMAKE_SOURCE_DIR} -DRELEASE=${PROJECT_VERSION}
      "-DCOMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}"
      -DBUILD_TYPE=${CMAKE_BUILD_TYPE} "-DFLAGS=${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}}"
      "-DSANITIZERS=${ASSAY_SANITIZE}" -P ${CMAKE_SOURCE_DIR}/cmake/WriteVersion.cmake
    BYPRODUCTS ${output}
    COMMENT "Checking the commit"
    VERBATIM)
  target_sources(${target} PRIVATE ${output})
  add_dependencies(${target} ${target}_version)
endfunction()
