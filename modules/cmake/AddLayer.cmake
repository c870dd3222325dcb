# add_layer(NAME SOURCES ... [PUBLIC targets...] [PRIVATE targets...] [TORCH])
#
# One static library stratagem_NAME (alias stratagem::NAME) per folder of lib/. PUBLIC names other layers. Vendor
# targets go to PRIVATE, so that no other layer sees their headers. TORCH adds LibTorch with the shared precompiled
# header.
function(add_layer name)
  cmake_parse_arguments(layer "TORCH" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  set(target stratagem_${name})
  add_library(${target} STATIC ${layer_SOURCES})
  add_library(stratagem::${name} ALIAS ${target})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/lib)
  target_link_libraries(${target} PUBLIC ${layer_PUBLIC} PRIVATE ${layer_PRIVATE})
  if(layer_TORCH)
    use_torch(${target} PUBLIC)
  endif()
endfunction()

# use_torch(TARGET VISIBILITY): LibTorch, with the precompiled header.
function(use_torch target visibility)
  if(NOT TARGET stratagem_pch)
    file(WRITE ${PROJECT_BINARY_DIR}/pch/empty.cpp "")
    add_library(stratagem_pch OBJECT ${PROJECT_BINARY_DIR}/pch/empty.cpp)
    target_link_libraries(stratagem_pch PRIVATE LibTorch::LibTorch)
    target_precompile_headers(stratagem_pch PRIVATE
      <ATen/ATen.h> <torch/csrc/autograd/autograd.h> <torch/csrc/autograd/grad_mode.h>)
  endif()
  target_link_libraries(${target} ${visibility} LibTorch::LibTorch)
  target_precompile_headers(${target} REUSE_FROM stratagem_pch)
  # The header is compiled with -fPIC; a program compiled with -fPIE cannot use it.
  target_compile_options(${target} PRIVATE -fPIC)
endfunction()
