# Writes version, git state and compiler into base/build_info.cpp when CMake configures. CMake configures again after a
# commit, because .git/logs/HEAD has changed.
set(STRATAGEM_GIT_SHA "unknown")
set(STRATAGEM_GIT_DIRTY "false")
find_package(Git QUIET)
if(Git_FOUND AND EXISTS ${PROJECT_SOURCE_DIR}/.git)
  execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse --short=12 HEAD
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE sha
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    set(STRATAGEM_GIT_SHA ${sha})
    execute_process(COMMAND ${GIT_EXECUTABLE} status --porcelain --untracked-files=no
      WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE changes ERROR_QUIET)
    if(changes)
      set(STRATAGEM_GIT_DIRTY "true")
    endif()
  endif()
  if(EXISTS ${PROJECT_SOURCE_DIR}/.git/logs/HEAD)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/.git/logs/HEAD)
  endif()
endif()

if(STRATAGEM_CUDA)
  set(STRATAGEM_FLAVOUR "cuda")
else()
  set(STRATAGEM_FLAVOUR "cpu")
endif()
string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
list(JOIN STRATAGEM_COMPILE_OPTIONS " " options)
string(STRIP "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}} ${options}" STRATAGEM_CXX_FLAGS)
