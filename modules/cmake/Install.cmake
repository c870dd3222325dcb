# cmake --install build --prefix DIR installs a program that runs from any folder of this machine. It keeps the paths of
# the libraries it was linked with (LibTorch, and a cluster's MPI and HDF5 modules).
if(TARGET stratagem)
  include(GNUInstallDirs)
  set_target_properties(stratagem PROPERTIES
    INSTALL_RPATH "${LibTorch_RPATH}"
    INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS stratagem RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  foreach(folder inputs slurm analysis)
    if(EXISTS ${PROJECT_SOURCE_DIR}/${folder})
      install(DIRECTORY ${folder} DESTINATION ${CMAKE_INSTALL_DATADIR}/stratagem
        USE_SOURCE_PERMISSIONS PATTERN __pycache__ EXCLUDE)
    endif()
  endforeach()
  install(DIRECTORY modules DESTINATION ${CMAKE_INSTALL_DATADIR}/stratagem
    USE_SOURCE_PERMISSIONS PATTERN cmake EXCLUDE PATTERN bootstrap.sh EXCLUDE)
  install(FILES README.md LICENSE CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

  if(STRATAGEM_TESTS)
    add_test(NAME install.works COMMAND ${CMAKE_COMMAND}
      -D BUILD=${PROJECT_BINARY_DIR} -D VERSION=${PROJECT_VERSION}
      -D PREFIX=${PROJECT_BINARY_DIR}/install-test
      -P ${PROJECT_SOURCE_DIR}/modules/cmake/TestInstall.cmake)
    set_tests_properties(install.works PROPERTIES TIMEOUT 60)
  endif()
endif()
