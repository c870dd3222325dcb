# Compiler settings of all targets of the project.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF) # there are none
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # From version 12 on, -O2 alone does not vectorise loops whose arrays might overlap, as in all of our loops.
  string(APPEND CMAKE_CXX_FLAGS_RELEASE " -fvect-cost-model=dynamic")
endif()

# -ffp-contract=off: an element's result must not depend on whether the compiler fused an operation.
set(STRATAGEM_COMPILE_OPTIONS -Wall -Wextra -Wpedantic -Wno-missing-field-initializers -ffp-contract=off)
if(STRATAGEM_WERROR)
  list(APPEND STRATAGEM_COMPILE_OPTIONS -Werror)
endif()
if(STRATAGEM_SANITIZE)
  list(APPEND STRATAGEM_COMPILE_OPTIONS -fsanitize=${STRATAGEM_SANITIZE} -fno-omit-frame-pointer
       -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${STRATAGEM_SANITIZE})
endif()

find_program(STRATAGEM_CCACHE_PROGRAM ccache)
if(STRATAGEM_CCACHE AND STRATAGEM_CCACHE_PROGRAM)
  # The precompiled header needs the sloppiness. Base directory and no-hash-dir let other clones share the cache.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${STRATAGEM_CCACHE_PROGRAM})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    list(APPEND STRATAGEM_COMPILE_OPTIONS -fpch-preprocess)
  endif()
endif()
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${STRATAGEM_COMPILE_OPTIONS}>")
