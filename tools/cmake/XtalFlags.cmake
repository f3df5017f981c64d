# SPDX-License-Identifier: MIT
# Language, warnings, optimisation and sanitizers, for every target of the tree.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
	set(CMAKE_BUILD_TYPE Debug CACHE STRING "Debug or Release" FORCE)
endif()
# Debug is still optimised: the protocols should be tested as compilers reorder them.
set(CMAKE_C_FLAGS_DEBUG "-O1 -g -fno-omit-frame-pointer")
set(CMAKE_C_FLAGS_RELEASE "-O2 -g")

# Empty value: equal to a file's own "#define _GNU_SOURCE", so neither warns about the other.
add_compile_definitions(_GNU_SOURCE= $<IF:$<CONFIG:Debug>,XTAL_DEBUG=1,XTAL_DEBUG=0>)
add_compile_options(-Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes
		    -Wpointer-arith -Wvla -Wundef)
add_compile_options(-fno-plt) # calls between our libraries in every operation
if(XTAL_CONVERSION)
	add_compile_options(-Wconversion)
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|amd64|AMD64")
	add_compile_options(-mcx16) # 16-byte compare and swap
endif()

if(XTAL_SANITIZE)
	add_compile_options(-fsanitize=${XTAL_SANITIZE} -fno-sanitize-recover=all)
	add_link_options(-fsanitize=${XTAL_SANITIZE})
	if(XTAL_SANITIZE MATCHES "thread" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
		add_compile_options(-Wno-tsan) # it knows no fences, and says so at each of them
	endif()
endif()

# The build tree has the shape of an installation, so the same $ORIGIN paths work in both.
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/obj)
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
add_link_options(-Wl,--enable-new-dtags)
