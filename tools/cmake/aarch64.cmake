# SPDX-License-Identifier: MIT
# Cross build for aarch64 with Debian's compiler and its arm64 (multiarch) libraries; the
# tests run under qemu-user on Debian's own arm64 C library. Not with "-L /usr/aarch64-linux-gnu":
# that mixes the cross package's loader with libc6:arm64, and pthread_create() hangs.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
