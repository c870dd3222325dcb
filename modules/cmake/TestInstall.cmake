# cmake -D BUILD=... -D PREFIX=... -D VERSION=... -P TestInstall.cmake: installs into a fresh prefix, moves it, and
# starts the program there with an empty environment.
file(REMOVE_RECURSE ${PREFIX} ${PREFIX}-moved)
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${PREFIX}
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
file(RENAME ${PREFIX} ${PREFIX}-moved)
execute_process(
  COMMAND ${CMAKE_COMMAND} -E env --unset=LD_LIBRARY_PATH ${PREFIX}-moved/bin/stratagem --version
  OUTPUT_VARIABLE told COMMAND_ERROR_IS_FATAL ANY)
string(FIND "${told}" "${VERSION}" found)
if(found EQUAL -1)
  message(FATAL_ERROR "the installed program does not tell version ${VERSION}: ${told}")
endif()
foreach(file share/stratagem/inputs share/stratagem/slurm/lib.sh share/doc/stratagem/LICENSE
        share/stratagem/modules/modulefiles/stratagem/${VERSION}
        share/stratagem/modules/modulefiles/stratagem/${VERSION}.lua)
  if(NOT EXISTS ${PREFIX}-moved/${file})
    message(FATAL_ERROR "${file} was not installed")
  endif()
endforeach()
file(REMOVE_RECURSE ${PREFIX}-moved)
