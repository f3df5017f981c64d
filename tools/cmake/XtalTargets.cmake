# SPDX-License-Identifier: MIT
# Libraries, front-ends, the command, single-file programs, manual pages and installation.
# Every function does nothing while its folder is empty.
set(XTAL_MAP_TOOL ${CMAKE_SOURCE_DIR}/tools/mapfile.py)
set(XTAL_GEN ${CMAKE_BINARY_DIR}/gen)

function(xtal_glob out)
	set(patterns ${ARGN})
	list(TRANSFORM patterns PREPEND ${CMAKE_SOURCE_DIR}/)
	file(GLOB found CONFIGURE_DEPENDS ${patterns})
	set(${out} ${found} PARENT_SCOPE)
endfunction()

# Links TARGET with a version script made from headers: nobody keeps lists of symbols by hand.
function(xtal_map target kind)
	set(map ${XTAL_GEN}/${target}.map)
	add_custom_command(OUTPUT ${map}
		COMMAND ${Python3_EXECUTABLE} ${XTAL_MAP_TOOL} ${kind} ${map} ${ARGN}
		DEPENDS ${XTAL_MAP_TOOL} ${CMAKE_SOURCE_DIR}/tools/cheader.py ${ARGN}
		COMMENT "Exported symbols of ${target}" VERBATIM)
	add_custom_target(${target}_map DEPENDS ${map})
	add_dependencies(${target} ${target}_map)
	set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${map})
	target_link_options(${target} PRIVATE -Wl,--version-script=${map} -Wl,-z,now -Wl,-z,nodelete)
	# clang leaves a sanitizer's symbols of a shared object to the program
	if(NOT (XTAL_SANITIZE AND CMAKE_C_COMPILER_ID MATCHES "Clang"))
		target_link_options(${target} PRIVATE -Wl,-z,defs)
	endif()
endfunction()

# libxtal.so.1; xtal_base, what front-ends and tools may take from src/base; and
# xtal_testing, the same objects with every symbol visible.
function(xtal_core)
	set(includes ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
	xtal_glob(base src/base/*.c)
	xtal_glob(rest src/os/*.c src/wire/*.c src/path/*.c src/core/*.c)
	add_library(xtal_headers INTERFACE)
	target_include_directories(xtal_headers INTERFACE ${includes})
	if(base)
		add_library(xtal_base_objects OBJECT ${base})
		target_link_libraries(xtal_base_objects PRIVATE xtal_headers)
		add_library(xtal_base STATIC $<TARGET_OBJECTS:xtal_base_objects>)
		target_link_libraries(xtal_base PUBLIC xtal_headers)
		set(objects $<TARGET_OBJECTS:xtal_base_objects>)
	else()
		add_library(xtal_base INTERFACE)
		target_link_libraries(xtal_base INTERFACE xtal_headers)
	endif()
	if(rest)
		add_library(xtal_objects OBJECT ${rest})
		target_link_libraries(xtal_objects PRIVATE xtal_headers PkgConfig::INIH
				      PkgConfig::SSL)
		list(APPEND objects $<TARGET_OBJECTS:xtal_objects>)
	endif()
	if(NOT base AND NOT rest)
		message(STATUS "No sources yet: no libxtal")
		return()
	endif()
	find_package(Threads REQUIRED)
	set(deps Threads::Threads PkgConfig::INIH PkgConfig::SSL)

	add_library(xtal_testing STATIC ${objects})
	set_target_properties(xtal_testing PROPERTIES LINKER_LANGUAGE C)
	target_link_libraries(xtal_testing PUBLIC xtal_headers ${deps})

	add_library(xtal SHARED ${objects})
	set_target_properties(xtal PROPERTIES VERSION 1 SOVERSION 1 LINKER_LANGUAGE C
						INSTALL_RPATH "$ORIGIN")
	target_link_libraries(xtal PUBLIC xtal_headers PRIVATE ${deps})
	xtal_glob(core_headers include/*.h src/core/*.h)
	list(FILTER core_headers INCLUDE REGEX "/core/|/xtal\\.h$")
	xtal_map(xtal core ${core_headers})
endfunction()

# xtal_frontend(name SOVERSION n VERSION n.n.n HEADERS file... [SONAME base] [MAP file])
# lib<name>.so.<n> from src/<name>: exports the functions of HEADERS (patterns below the tree),
# nothing else, without symbol versions, as the originals do; MAP gives a version script by hand
# instead.
function(xtal_frontend name)
	cmake_parse_arguments(F "" "SOVERSION;VERSION;SONAME;MAP" "HEADERS" ${ARGN})
	xtal_glob(sources src/${name}/*.c)
	if(NOT sources OR NOT TARGET xtal)
		message(STATUS "No sources yet: no lib${name}")
		return()
	endif()
	if(NOT F_SONAME)
		set(F_SONAME ${name})
	endif()
	add_library(${name} SHARED ${sources})
	# The version script alone decides: foreign headers carry no export marks of ours.
	set_target_properties(${name} PROPERTIES OUTPUT_NAME ${F_SONAME} VERSION ${F_VERSION}
			      SOVERSION ${F_SOVERSION} INSTALL_RPATH "$ORIGIN"
			      C_VISIBILITY_PRESET default)
	target_compile_options(${name} PRIVATE -fno-semantic-interposition)
	target_link_libraries(${name} PUBLIC xtal PRIVATE xtal_base)
	if(F_MAP)
		target_link_options(${name} PRIVATE -Wl,--version-script=${F_MAP} -Wl,-z,now
				    -Wl,-z,nodelete)
		set_property(TARGET ${name} APPEND PROPERTY LINK_DEPENDS ${F_MAP})
	else()
		xtal_glob(F_HEADERS ${F_HEADERS})
		xtal_map(${name} plain ${F_HEADERS})
	endif()
	set_property(GLOBAL APPEND PROPERTY XTAL_FRONTENDS ${name})
endfunction()

# The xtal command.
function(xtal_command)
	xtal_glob(sources src/cli/*.c)
	if(NOT sources OR NOT TARGET cdma)
		message(STATUS "No sources yet: no xtal command")
		return()
	endif()
	pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
	find_package(Threads REQUIRED)
	add_executable(xtal_cli ${sources})
	set_target_properties(xtal_cli PROPERTIES OUTPUT_NAME xtal INSTALL_RPATH "$ORIGIN/../lib"
			      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
	target_link_libraries(xtal_cli PRIVATE cdma urma xtal xtal_base PkgConfig::JANSSON PkgConfig::SSL
			      Threads::Threads m)
endfunction()

# One program per file of a folder (examples, bench), linked with the libraries, and with
# lib.c and lib_*.c of the folder when there are any.
function(xtal_programs folder)
	xtal_glob(sources ${folder}/*.c)
	if(NOT sources OR NOT TARGET cdma OR NOT TARGET urma)
		return()
	endif()
	find_package(Threads REQUIRED)
	set(lib)
	set(parts ${sources})
	list(FILTER parts INCLUDE REGEX "/lib(_[a-z]+)?\\.c$")
	if(parts)
		list(REMOVE_ITEM sources ${parts})
		add_library(${folder}_lib STATIC ${parts})
		target_link_libraries(${folder}_lib PUBLIC cdma urma xtal)
		set(lib ${folder}_lib)
	endif()
	foreach(source ${sources})
		get_filename_component(name ${source} NAME_WE)
		set(target ${folder}_${name})
		add_executable(${target} ${source})
		set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name}
			INSTALL_RPATH "$ORIGIN/../lib"
			RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${folder})
		target_link_libraries(${target} PRIVATE ${lib} cdma urma xtal xtal_base Threads::Threads
				      ${CMAKE_DL_LIBS} m)
	endforeach()
endfunction()

# Manual pages of section 3, one per public function, from the comments of the headers.
function(xtal_man)
	xtal_glob(headers include/*.h include/*/*.h)
	list(FILTER headers INCLUDE REGEX "/(cdma_u_lib|urma_perf|urma_(api|types)/[a-z_]+|xtal)\\.h$")
	if(NOT XTAL_MAN OR NOT headers)
		return()
	endif()
	set(stamp ${CMAKE_BINARY_DIR}/man/stamp)
	add_custom_command(OUTPUT ${stamp}
		COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/man.py
			--out ${CMAKE_BINARY_DIR}/man/man3 --version ${PROJECT_VERSION}
			--date ${XTAL_DATE} ${headers}
		COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
		DEPENDS ${CMAKE_SOURCE_DIR}/tools/man.py ${CMAKE_SOURCE_DIR}/tools/cheader.py
			${headers}
		COMMENT "Manual pages" VERBATIM)
	add_custom_target(man ALL DEPENDS ${stamp})
endfunction()

function(xtal_install)
	install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
	if(TARGET xtal)
		install(TARGETS xtal LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
		xtal_pkgconfig(xtal xtal "" "User-space DMA engine" ${PROJECT_VERSION})
	endif()
	get_property(frontends GLOBAL PROPERTY XTAL_FRONTENDS)
	foreach(name ${frontends})
		install(TARGETS ${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
		get_target_property(lib ${name} OUTPUT_NAME)
		get_target_property(version ${name} VERSION)
		xtal_pkgconfig(lib${lib} ${lib} "xtal" "The ${lib} API on the Xtal engine" ${version})
	endforeach()
	if(TARGET xtal_cli)
		install(TARGETS xtal_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
	endif()
	foreach(section 1 3 7)
		xtal_glob(pages man/*.${section})
		install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
	endforeach()
	if(TARGET man)
		install(DIRECTORY ${CMAKE_BINARY_DIR}/man/man3 DESTINATION ${CMAKE_INSTALL_MANDIR}
			FILES_MATCHING PATTERN "*.3")
	endif()
endfunction()

# Paths are relative to the .pc file, so a moved installation still answers correctly.
function(xtal_pkgconfig file lib requires description version)
	set(XTAL_PC_FILE ${file})
	set(XTAL_PC_LIB ${lib})
	set(XTAL_PC_REQUIRES ${requires})
	set(XTAL_PC_DESCRIPTION ${description})
	set(XTAL_PC_VERSION ${version})
	configure_file(${CMAKE_SOURCE_DIR}/tools/cmake/library.pc.in ${XTAL_GEN}/${file}.pc @ONLY)
	install(FILES ${XTAL_GEN}/${file}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
