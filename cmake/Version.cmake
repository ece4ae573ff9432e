# version_source(MODULE): compiles the definition of base::version() into a module. The commit is
# looked up at every build, and the file is rewritten only when it changed.
function(version_source module)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/version.cc)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  string(JOIN " " flags ${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}} ${ASSAY_CODEGEN_FLAGS})
  add_custom_target(assay_version
    COMMAND ${CMAKE_COMMAND}
      -DOUTPUT=${output} -DSOURCE_DIR=${CMAKE_SOURCE_DIR} -DRELEASE=${PROJECT_VERSION}
      "-DCOMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}"
      -DBUILD_TYPE=${CMAKE_BUILD_TYPE} "-DFLAGS=${flags}"
      "-DSANITIZERS=${ASSAY_SANITIZE}" -P ${CMAKE_SOURCE_DIR}/cmake/WriteVersion.cmake
    BYPRODUCTS ${output}
    COMMENT "Checking the commit"
    VERBATIM)
  # By itself: every commit compiles it again.
  set_source_files_properties(${output} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  module_sources(${module} ${output})
  add_dependencies(assay_${module} assay_version)
  if(ASSAY_SANITIZED_VARIANTS)
    add_dependencies(assay_${module}_sanitized assay_version)
  endif()
endfunction()
