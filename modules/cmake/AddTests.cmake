# Tests of a layer: ctest/<layer>/<unit>.cpp holds the GoogleTest suite with the unit's name in CapWords
# (bucket_plan.cpp: TEST(BucketPlan, ...)). All units of a layer are compiled into one program. Each unit is one
# CTest test, named <layer>.<unit>, or <layer>.<unit>.np<N> if it runs under the launcher.
#
# add_unit_tests(LAYER UNITS ... [LINK targets...] [TIMEOUT seconds] [LABEL label])
# add_mpi_tests(LAYER UNITS ... RANKS n... [LINK targets...] [TIMEOUT seconds] [LABEL label])
#
# The target <label>_tests builds the programs of all tests that have the label.
#
# Allow more ranks than cores, and disable single copy between processes: for Open MPI up to 4, and from 5 on.
set(STRATAGEM_TEST_ENVIRONMENT OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
  OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_smsc=^cma)
if(NOT STRATAGEM_CUDA) # in a job that holds GPUs, too
  list(APPEND STRATAGEM_TEST_ENVIRONMENT CUDA_VISIBLE_DEVICES=-1)
endif()
# Sanitizers leave failed allocations and signals to the program. Only processes without Open MPI are checked for leaks:
# Open MPI holds memory to the end, in modules that are unloaded by then.
set(STRATAGEM_UNIT_TEST_ENVIRONMENT ${STRATAGEM_TEST_ENVIRONMENT})
if(STRATAGEM_SANITIZE)
  set(options allocator_may_return_null=1:handle_segv=0:handle_abort=0)
  list(APPEND STRATAGEM_TEST_ENVIRONMENT ASAN_OPTIONS=${options}:detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1)
  list(APPEND STRATAGEM_UNIT_TEST_ENVIRONMENT ASAN_OPTIONS=${options}:detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1
    LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/ctest/support/lsan.supp:print_suppressions=0)
endif()

function(suite_of unit result)
  string(REPLACE "_" ";" words ${unit})
  set(suite "")
  foreach(word ${words})
    string(SUBSTRING ${word} 0 1 first)
    string(SUBSTRING ${word} 1 -1 rest)
    string(TOUPPER ${first} first)
    string(APPEND suite ${first}${rest})
  endforeach()
  set(${result} ${suite} PARENT_SCOPE)
endfunction()

function(add_test_program program main)
  cmake_parse_arguments(arg "" "LABEL" "UNITS;LINK" ${ARGN})
  list(TRANSFORM arg_UNITS APPEND .cpp OUTPUT_VARIABLE sources)
  add_executable(${program} ${sources})
  target_include_directories(${program} PRIVATE ${PROJECT_SOURCE_DIR}/ctest)
  target_link_libraries(${program} PRIVATE ${main} ${arg_LINK} GTest::gtest)
  use_torch(${program} PRIVATE)
  set_target_properties(${program} PROPERTIES BUILD_RPATH "${LibTorch_RPATH}")
  if(arg_LABEL)
    if(NOT TARGET ${arg_LABEL}_tests)
      add_custom_target(${arg_LABEL}_tests)
    endif()
    add_dependencies(${arg_LABEL}_tests ${program})
  endif()
endfunction()

function(add_unit_tests layer)
  cmake_parse_arguments(arg "" "TIMEOUT;LABEL" "UNITS;LINK" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  add_test_program(test_${layer} stratagem_test_main UNITS ${arg_UNITS} LINK ${arg_LINK} LABEL ${arg_LABEL})
  foreach(unit ${arg_UNITS})
    suite_of(${unit} suite)
    add_test(NAME ${layer}.${unit} COMMAND test_${layer} --gtest_filter=${suite}.*:*/${suite}.*)
    set_tests_properties(${layer}.${unit} PROPERTIES TIMEOUT ${arg_TIMEOUT}
      SKIP_RETURN_CODE 77 LABELS "${arg_LABEL}"
      ENVIRONMENT "${STRATAGEM_UNIT_TEST_ENVIRONMENT}")
  endforeach()
endfunction()

function(add_mpi_tests layer)
  cmake_parse_arguments(arg "" "TIMEOUT;LABEL" "UNITS;LINK;RANKS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_test_program(test_${layer}_mpi stratagem_test_mpi_main UNITS ${arg_UNITS} LINK ${arg_LINK} LABEL ${arg_LABEL})
  foreach(unit ${arg_UNITS})
    suite_of(${unit} suite)
    foreach(ranks ${arg_RANKS})
      set(test ${layer}.${unit}.np${ranks})
      add_test(NAME ${test} COMMAND ${MPIEXEC_EXECUTABLE} --bind-to none -n ${ranks}
        $<TARGET_FILE:test_${layer}_mpi> --gtest_filter=${suite}.*:*/${suite}.*)
      set_tests_properties(${test} PROPERTIES TIMEOUT ${arg_TIMEOUT} PROCESSORS ${ranks}
        SKIP_RETURN_CODE 77 LABELS "${arg_LABEL}"
        ENVIRONMENT "${STRATAGEM_TEST_ENVIRONMENT}")
    endforeach()
  endforeach()
endfunction()
