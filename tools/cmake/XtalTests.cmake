# SPDX-License-Identifier: MIT
# Tests by folder; the folder is the ctest label, "<folder>.<file>" the name
# (a file's "test_" is left out of it).
#
#   unit sim fuzz       test/<folder>/*.c, against the objects of libxtal (all symbols visible)
#   contract system     test/<folder>/*.c, against libcdma, liburma and libxtal as programs see them
#   sim system          also test/<folder>/*.sh
#   fuzz                each file also as fuzz.hunt.<file>, by test/fuzz/hunt.sh, under ASan
#   model               test/model/*.pml by test/model/run.sh, plain build only
#   check               tools/checks, plain build only
#
# A test sets its own properties by one line in a comment near its top:
#   ctest: timeout=120 label=soak serial plain
# timeout in seconds (default 60, system 300); label adds one (soak: `make soak` runs it with
# XTAL_TEST_SOAK=1); serial: not beside other tests (what counts wake-ups or memory); plain: only
# in the plain build. Exit status 77 means skipped: print "SKIP: reason".
#
# Contract tests run once per path, as contract.<file>.<path>; paths=self,map in the line restricts
# them; adopt adds adopt, map to memory that is adopted; hosts adds tls4 and tcp6, tcp between two
# hosts (network namespaces), in the plain build, and tls4 in those with a sanitizer; link-local
# tlsl (over link-local addresses), in the plain build;
# pages adds 64k-map and 64k-ring, on a machine with pages of 64 KiB, where one is emulated;
# deferred adds 0-self, 0-map and 0-cma: XTAL_INLINE_BYTES=0, so that nothing is moved at the post.
set(XTAL_FOLDERS_INSIDE unit sim fuzz)
set(XTAL_FOLDERS_OUTSIDE contract system)

# Environment of every test: XTAL_TEST_SOURCE_DIR, XTAL_TEST_BUILD_DIR, XTAL_TEST_BIN (starts the
# xtal command), XTAL_TEST_SANITIZE and, in a cross build, XTAL_TEST_EMULATOR (words to put before
# a program). The library takes no name that begins so for a setting.
function(xtal_test_environment out)
	set(env "XTAL_TEST_SOURCE_DIR=${CMAKE_SOURCE_DIR}" "XTAL_TEST_BUILD_DIR=${CMAKE_BINARY_DIR}"
		"XTAL_TEST_SANITIZE=${XTAL_SANITIZE}")
	set(bin ${CMAKE_BINARY_DIR}/bin/xtal)
	if(CMAKE_CROSSCOMPILING_EMULATOR)
		string(REPLACE ";" " " emulator "${CMAKE_CROSSCOMPILING_EMULATOR}")
		list(APPEND env "XTAL_TEST_EMULATOR=${emulator}")
		set(bin ${CMAKE_BINARY_DIR}/gen/xtal)
		file(WRITE ${bin} "#!/bin/sh\nexec ${emulator} ${CMAKE_BINARY_DIR}/bin/xtal \"$@\"\n")
		file(CHMOD ${bin} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
	endif()
	list(APPEND env "XTAL_TEST_BIN=${bin}")
	if(XTAL_SANITIZE MATCHES "address")
		list(APPEND env "UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1")
	endif()
	if(XTAL_SANITIZE MATCHES "thread") # forked children open contexts of their own: let them
		# atexit_sleep_ms: else every process ends a second later
		set(options
		    "halt_on_error=1:die_after_fork=0:second_deadlock_stack=1:atexit_sleep_ms=0")
		if(EXISTS ${CMAKE_SOURCE_DIR}/tools/ci/tsan.supp)
			string(APPEND options ":suppressions=${CMAKE_SOURCE_DIR}/tools/ci/tsan.supp")
		endif()
		list(APPEND env "TSAN_OPTIONS=${options}")
	endif()
	set(${out} "${env}" PARENT_SCOPE)
endfunction()

function(xtal_test_properties name label timeout source)
	set(labels ${label})
	set(serial FALSE)
	if(source)
		file(STRINGS ${source} words REGEX "ctest: ")
		set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
		if(words MATCHES "ctest:.* timeout=([0-9]+)")
			set(timeout ${CMAKE_MATCH_1})
		endif()
		if(words MATCHES "ctest:.* label=([a-z]+)")
			list(APPEND labels ${CMAKE_MATCH_1})
		endif()
		if(words MATCHES "ctest:.* serial")
			set(serial TRUE)
		endif()
	endif()
	math(EXPR timeout "${timeout} * ${XTAL_TIMEOUT_SCALE}")
	xtal_test_environment(env)
	set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT ${timeout}
		SKIP_RETURN_CODE 77 RUN_SERIAL ${serial} ENVIRONMENT "${env}"
		WORKING_DIRECTORY ${CMAKE_BINARY_DIR})
endfunction()

# True in OUT when the test does not belong to this build.
function(xtal_test_elsewhere out source)
	set(${out} FALSE PARENT_SCOPE)
	file(STRINGS ${source} words REGEX "ctest: ")
	if(NOT XTAL_PLAIN AND words MATCHES "ctest:.* plain")
		set(${out} TRUE PARENT_SCOPE)
	endif()
endfunction()

# One test per path that the source names (all by default).
function(xtal_test_per_path name target label timeout source)
	set(paths self map cma ring tcp)
	file(STRINGS ${source} words REGEX "ctest: ")
	if(words MATCHES "ctest:.* paths=([a-z,]+)")
		string(REPLACE "," ";" paths "${CMAKE_MATCH_1}")
	endif()
	if(words MATCHES "ctest:.* hosts" AND (XTAL_PLAIN OR XTAL_SANITIZE))
		list(APPEND paths tls4) # IPv4 with TLS, and IPv6 without
	endif()
	if(words MATCHES "ctest:.* hosts" AND XTAL_PLAIN)
		list(APPEND paths tcp6)
	endif()
	if(words MATCHES "ctest:.* adopt" AND NOT CMAKE_CROSSCOMPILING)
		list(APPEND paths adopt)
	endif()
	if(XTAL_PLAIN AND words MATCHES "ctest:.* link-local")
		list(APPEND paths tlsl)
	endif()
	foreach(path ${paths})
		add_test(NAME ${name}.${path} COMMAND ${target} ${path})
		xtal_test_properties(${name}.${path} ${label} ${timeout} ${source})
	endforeach()
	if(words MATCHES "ctest:.* deferred")
		foreach(path self map cma)
			set(test ${name}.0-${path})
			add_test(NAME ${test} COMMAND ${target} ${path})
			xtal_test_properties(${test} ${label} ${timeout} ${source})
			set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT XTAL_INLINE_BYTES=0
				     XTAL_TEST_SCALE=3)
		endforeach()
	endif()
	if(CMAKE_CROSSCOMPILING_EMULATOR AND words MATCHES "ctest:.* pages")
		foreach(path map ring)
			set(test ${name}.64k-${path})
			add_test(NAME ${test} COMMAND ${target} ${path})
			xtal_test_properties(${test} ${label} ${timeout} ${source})
			set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT QEMU_PAGESIZE=65536)
		endforeach()
	endif()
endfunction()

function(xtal_test_programs folder timeout)
	xtal_glob(sources test/${folder}/*.c)
	foreach(source ${sources})
		xtal_test_elsewhere(elsewhere ${source})
		if(elsewhere)
			continue()
		endif()
		get_filename_component(file ${source} NAME_WE)
		string(REGEX REPLACE "^test_" "" file ${file})
		set(target test_${folder}_${file})
		add_executable(${target} ${source})
		set_target_properties(${target} PROPERTIES OUTPUT_NAME ${file}
			INSTALL_RPATH "$ORIGIN/../../lib"
			RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test/${folder})
		target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/test
					   ${CMAKE_SOURCE_DIR}/test/lib)
		target_link_libraries(${target} PRIVATE ${ARGN} PkgConfig::CMOCKA
				      Threads::Threads ${CMAKE_DL_LIBS} m)
		if(folder STREQUAL "contract")
			xtal_test_per_path(${folder}.${file} ${target} ${folder} ${timeout} ${source})
		else()
			add_test(NAME ${folder}.${file} COMMAND ${target})
			xtal_test_properties(${folder}.${file} ${folder} ${timeout} ${source})
		endif()
	endforeach()
endfunction()

function(xtal_test_scripts folder timeout)
	xtal_glob(scripts test/${folder}/*.sh)
	foreach(script ${scripts})
		xtal_test_elsewhere(elsewhere ${script})
		if(elsewhere)
			continue()
		endif()
		get_filename_component(file ${script} NAME_WE)
		string(REGEX REPLACE "^test_" "" file ${file})
		add_test(NAME ${folder}.${file} COMMAND bash ${script})
		xtal_test_properties(${folder}.${file} ${folder} ${timeout} ${script})
	endforeach()
endfunction()

# libFuzzer looks for bad input in one build only, that under ASan; elsewhere the fuzzers run over
# their corpus.
function(xtal_test_hunts)
	if(NOT XTAL_SANITIZE MATCHES "address" OR CMAKE_CROSSCOMPILING)
		return()
	endif()
	set(script ${CMAKE_SOURCE_DIR}/test/fuzz/hunt.sh)
	xtal_glob(sources test/fuzz/*.c)
	foreach(source ${sources})
		get_filename_component(file ${source} NAME_WE)
		add_test(NAME fuzz.hunt.${file} COMMAND bash ${script} ${file})
		xtal_test_properties(fuzz.hunt.${file} fuzz 120 ${script})
	endforeach()
endfunction()

function(xtal_test_checks)
	set(checks ${CMAKE_SOURCE_DIR}/tools/checks)
	foreach(check arrows headers sizes hygiene format symbols man install tools)
		add_test(NAME check.${check}
			COMMAND ${checks}/run.sh ${check} ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
		xtal_test_properties(check.${check} check 300 "")
	endforeach()
	add_test(NAME check.selftest COMMAND ${checks}/selftest.sh)
	xtal_test_properties(check.selftest check 300 "")
endfunction()

function(xtal_tests)
	if(XTAL_PLAIN)
		xtal_test_checks()
		xtal_glob(models test/model/*.pml)
		foreach(model ${models})
			get_filename_component(file ${model} NAME_WE)
			add_test(NAME model.${file}
				 COMMAND sh ${CMAKE_SOURCE_DIR}/test/model/run.sh ${file})
			xtal_test_properties(model.${file} model 300 ${model})
		endforeach()
	endif()
	if(NOT TARGET xtal)
		return()
	endif()
	find_package(Threads REQUIRED)
	pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
	set(lib)
	xtal_glob(helpers test/lib/*.c)
	if(helpers)
		add_library(xtal_test_lib STATIC ${helpers})
		target_include_directories(xtal_test_lib PRIVATE ${CMAKE_SOURCE_DIR}/test
					   ${CMAKE_SOURCE_DIR}/src)
		target_link_libraries(xtal_test_lib PRIVATE xtal_headers PkgConfig::CMOCKA
				      Threads::Threads)
		set(lib xtal_test_lib)
	endif()
	foreach(folder ${XTAL_FOLDERS_INSIDE})
		xtal_test_programs(${folder} 60 ${lib} xtal_testing)
	endforeach()
	xtal_test_scripts(sim 60)
	xtal_test_hunts()
	if(TARGET cdma AND TARGET urma)
		foreach(folder ${XTAL_FOLDERS_OUTSIDE})
			set(timeout 60)
			if(folder STREQUAL "system")
				set(timeout 300)
			endif()
			xtal_test_programs(${folder} ${timeout} ${lib} cdma urma xtal xtal_base)
		endforeach()
		xtal_test_scripts(system 300)
	endif()
endfunction()
