# How every target of Weir is compiled: one language level, one warning list, one place for outputs.
# Targets are declared with weir_library(), weir_program(), weir_test() and weir_fuzz(), never with add_library() directly.

option(WEIR_TESTS "Build the tests" ON)
option(WEIR_BENCH "Build the micro-benchmarks" ON)
option(WEIR_FUZZ "Build the libFuzzer targets (clang only)" OFF)
set(WEIR_SANITIZE "" CACHE STRING "Value of -fsanitize= for every target, for example address,undefined")
option(WEIR_COVERAGE "Instrument for gcov" OFF)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib/static")

# A second build of the same text costs almost nothing where ccache is installed.
find_program(WEIR_CCACHE ccache)
if(WEIR_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER "${WEIR_CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${WEIR_CCACHE}")
endif()

find_package(Threads REQUIRED)
find_package(Boost 1.81 EXACT REQUIRED)
find_package(Protobuf REQUIRED)
find_package(gflags REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(tomlplusplus REQUIRED)

add_library(weir_options INTERFACE)
target_include_directories(weir_options INTERFACE "${CMAKE_SOURCE_DIR}")
target_compile_options(weir_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion
                                              -Wold-style-cast -Wnon-virtual-dtor -Werror)
# libstdc++ 12 calls a function that it declares deprecated itself, and clang shows that wherever std::stable_sort is used;
# g++ still warns of our own uses.
target_compile_options(weir_options INTERFACE $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>)
target_compile_definitions(weir_options INTERFACE WEIR_VERSION="${PROJECT_VERSION}")
if(WEIR_SANITIZE)
  add_compile_options(-fsanitize=${WEIR_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${WEIR_SANITIZE})
  # Boost.Asio has a fence, which the thread sanitizer does not follow; g++ says so wherever it is compiled.
  if(WEIR_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-tsan>)
  endif()
endif()
if(WEIR_COVERAGE)
  add_compile_options(--coverage)
  add_link_options(--coverage)
endif()

# weir_library(NAME SOURCES a.cc ... [DEPENDS target ...]): a static library, include root = source root.
function(weir_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC ${ARG_DEPENDS} PRIVATE weir_options)
  target_include_directories(${name} PUBLIC "${CMAKE_SOURCE_DIR}")
endfunction()

# weir_decides(TARGET...): code whose speed is the product's. Loops over columns are vectorised, and bits counted by an
# instruction that every x86-64 server since 2009 has (x86-64-v2); without fused multiply-add, which would round differently.
function(weir_decides)
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo,Release>:-O3>)
    if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
      target_compile_options(${target} PRIVATE -march=x86-64-v2)
    endif()
  endforeach()
endfunction()

# weir_module(NAME SOURCES a.cc ... [DEPENDS target ...]): a library that is loaded at run time; lands in build/<preset>/lib.
function(weir_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(${name} MODULE ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE weir_options ${ARG_DEPENDS})
  set_target_properties(${name} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()

# weir_link_dpdk(TARGET): the core of DPDK and the drivers of WEIR_DPDK_DRIVERS, all inside of the target. Its headers are
# the system's, since they do not compile without warnings. Drivers register themselves, so they come whole.
function(weir_link_dpdk target)
  target_include_directories(${target} SYSTEM PRIVATE ${WEIR_DPDK_INCLUDE_DIRS})
  set(flags ${WEIR_DPDK_CFLAGS_OTHER})
  list(REMOVE_ITEM flags -I/usr/include/dpdk)
  target_compile_options(${target} PRIVATE ${flags})
  set(libraries "")
  foreach(part IN ITEMS ${WEIR_DPDK_DRIVERS} mempool_ring bus_vdev bus_pci pci hash rcu ethdev net mbuf mempool ring meter telemetry kvargs eal)
    list(APPEND libraries "${WEIR_DPDK_LIBDIR}/librte_${part}.a")
  endforeach()
  set(system bsd pthread dl m numa)
  if("net_af_xdp" IN_LIST WEIR_DPDK_DRIVERS)
    list(APPEND system xdp bpf)
  endif()
  target_link_libraries(${target} PRIVATE -Wl,--whole-archive ${libraries} -Wl,--no-whole-archive
                                          -Wl,--exclude-libs,ALL ${system})
  # Bursts and the callbacks of DPDK's interrupt thread take turns: transport/dpdk/ethdev/interrupts.h.
  foreach(call IN ITEMS register unregister unregister_pending)
    target_link_options(${target} PRIVATE -Wl,--wrap=rte_intr_callback_${call})
  endforeach()
  if(NOT WEIR_SANITIZE)
    target_link_options(${target} PRIVATE -Wl,-z,defs)
  endif()
endfunction()

# weir_program(NAME SOURCES main.cc ... [DEPENDS target ...]): lands in build/<preset>/bin.
function(weir_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE weir_options ${ARG_DEPENDS} weir_command_line)
  if(WEIR_SANITIZE STREQUAL "thread")
    target_sources(${name} PRIVATE "${CMAKE_SOURCE_DIR}/tools/cmake/tsan_suppressions.cc")
  endif()
endfunction()

# weir_targets_below(FOLDER RESULT EXCEPT FOLDER): all targets of a folder and those below it but one.
function(weir_targets_below folder result except exception)
  get_property(targets DIRECTORY "${folder}" PROPERTY BUILDSYSTEM_TARGETS)
  get_property(folders DIRECTORY "${folder}" PROPERTY SUBDIRECTORIES)
  foreach(each IN LISTS folders)
    if(NOT each STREQUAL exception)
      weir_targets_below("${each}" below EXCEPT "${exception}")
      list(APPEND targets ${below})
    endif()
  endforeach()
  set(${result} ${targets} PARENT_SCOPE)
endfunction()

# weir_test(NAME SOURCES a_test.cc ... [DEPENDS target ...] [LABELS fast]): one GoogleTest program, one ctest entry a test case.
function(weir_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LABELS" ${ARGN})
  if(NOT ARG_LABELS)
    set(ARG_LABELS fast)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE weir_options ${ARG_DEPENDS} GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 120)
endfunction()

# weir_vm_test(NAME SOURCES a_test.cc ... [DEPENDS target ...]): one GoogleTest program that needs what this host lacks, run
# as one test within a virtual machine (tests/vm).
function(weir_vm_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE weir_options ${ARG_DEPENDS} GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  add_test(NAME vm.${name} COMMAND "${CMAKE_SOURCE_DIR}/tests/vm/vm" $<TARGET_FILE:${name}>)
  set_tests_properties(vm.${name} PROPERTIES LABELS slow TIMEOUT 400)
endfunction()

# weir_fuzz(NAME SOURCES a_fuzz.cc DEPENDS target ...): a libFuzzer target when WEIR_FUZZ is on; otherwise a program that
# replays the files of tests/fuzz/corpus/<NAME> through the same entry point and is run as a test.
function(weir_fuzz name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  if(WEIR_FUZZ)
    add_executable(${name} ${ARG_SOURCES})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  else()
    add_executable(${name} ${ARG_SOURCES} "${CMAKE_SOURCE_DIR}/tests/fuzz/replay_main.cc")
    add_test(NAME fuzz_replay.${name} COMMAND ${name} "${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${name}")
    set_tests_properties(fuzz_replay.${name} PROPERTIES LABELS fast TIMEOUT 60)
  endif()
  target_link_libraries(${name} PRIVATE weir_options ${ARG_DEPENDS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
endfunction()
