#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs a build into a scratch prefix, moves that prefix, and uses it as a stranger would:
# pkg-config, a C and a C++ client, dlopen by path, the xtal command.  install.sh ROOT BUILD
set -eu
root=$1
build=$2
if [ ! -e "$build/lib/libcdma.so.1" ]; then
	echo "SKIP: libcdma.so.1 is not built"
	exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset LD_LIBRARY_PATH || true
fail() {
	echo "install: $*"
	exit 1
}

cmake --install "$build" --prefix "$scratch/first" >/dev/null
mv "$scratch/first" "$scratch/prefix"
prefix=$scratch/prefix

for file in lib/libxtal.so.1 lib/libxtal.so lib/libcdma.so.1 lib/libcdma.so lib/libcdma.so.1.0.2 \
	lib/liburma.so.0 lib/liburma.so lib/liburma.so.0.0.3 lib/libtpsa.so \
	lib/pkgconfig/xtal.pc lib/pkgconfig/libcdma.pc lib/pkgconfig/liburma.pc; do
	[ -e "$prefix/$file" ] || fail "$file is not installed"
done
(cd "$root/include" && find . -name '*.h') | while read -r header; do
	cmp -s "$root/include/$header" "$prefix/include/$header" || echo "include/$header is not installed"
done >"$scratch/missing"
[ ! -s "$scratch/missing" ] || fail "$(cat "$scratch/missing")"
for page in "$root"/man/*.[137]; do
	[ ! -e "$page" ] || [ -e "$prefix/share/man/man${page##*.}/$(basename "$page")" ] ||
		fail "$page is not installed"
done
for page in "$build"/man/man3/*.3; do
	[ ! -e "$page" ] || [ -e "$prefix/share/man/man3/$(basename "$page")" ] ||
		fail "$page is not installed"
done
if grep -rlF -e "$scratch/first" -e "$build" "$prefix/lib/pkgconfig" "$prefix/share" 2>/dev/null; then
	fail "the files above name the build folder"
fi
for object in "$prefix"/lib/*.so.1 "$prefix"/bin/*; do
	[ -e "$object" ] || continue
	if readelf -dW "$object" | grep -E 'R(UN)?PATH' | grep -v 'RUNPATH.*\[\$ORIGIN'; then
		fail "$object has another search path than \$ORIGIN"
	fi
done

# A client that knows nothing but pkg-config.
cat >"$scratch/client.c" <<'END'
#include <stdint.h>
#include <stdio.h>
#include <cdma_u_lib.h>
int main(void)
{
	uint32_t count = 0;
	struct dma_device *list = dma_get_device_list(&count);
	if (list)
		dma_free_device_list(list, count);
	printf("%u\n", count);
	return 0;
}
END
cat >"$scratch/loader.c" <<'END'
#include <dlfcn.h>
int main(int argc, char **argv)
{
	void *lib = argc > 1 ? dlopen(argv[1], RTLD_NOW) : 0;
	return lib && dlsym(lib, "dma_get_device_list") ? 0 : 1;
}
END
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
read -r -a flags <<<"$(pkg-config --cflags --libs libcdma)"
gcc -Wall -Werror "$scratch/client.c" -o "$scratch/client" "${flags[@]}" -Wl,-rpath,"$prefix/lib"
"$scratch/client" >/dev/null || fail "the C client does not run"
g++ -x c++ -std=c++11 -Wall -Werror "$scratch/client.c" -o "$scratch/client++" "${flags[@]}" \
	-Wl,-rpath,"$prefix/lib"
"$scratch/client++" >/dev/null || fail "the C++ client does not run"

# The same for URMA.
cat >"$scratch/urma.c" <<'END'
#include <stdio.h>
#include <urma_api.h>
#include <urma_perf.h>
#include <urma_provider.h>
#include <urma_types_str.h>
#include <urma_ubagg.h>
int main(void)
{
	int count = 0;
	urma_device_t **list = urma_init(NULL) ? NULL : urma_get_device_list(&count);
	if (list)
		printf("%s %s\n", list[0]->name, urma_tp_type_to_string(list[0]->type));
	urma_free_device_list(list);
	return count == 0;
}
END
read -r -a flags <<<"$(pkg-config --cflags --libs liburma)"
gcc -Wall -Werror "$scratch/urma.c" -o "$scratch/urma" "${flags[@]}" -Wl,-rpath,"$prefix/lib"
"$scratch/urma" >/dev/null || fail "the C client of URMA does not run"
g++ -x c++ -std=c++11 -Wall -Werror "$scratch/urma.c" -o "$scratch/urma++" "${flags[@]}" \
	-Wl,-rpath,"$prefix/lib"
"$scratch/urma++" >/dev/null || fail "the C++ client of URMA does not run"
gcc "$scratch/loader.c" -o "$scratch/loader" -ldl
"$scratch/loader" "$prefix/lib/libcdma.so" || fail "dlopen of libcdma.so does not work"
if [ -e "$prefix/include/xtal.h" ]; then
	read -r -a flags <<<"$(pkg-config --cflags --libs xtal)"
	echo '#include <xtal.h>
int main(void) { return 0; }' >"$scratch/xtal.c"
	gcc -Wall -Werror "$scratch/xtal.c" -o "$scratch/xtal" "${flags[@]}" -Wl,-rpath,"$prefix/lib"
	"$scratch/xtal" || fail "the xtal.h client does not run"
fi
if [ -e "$build/bin/xtal" ]; then
	"$prefix/bin/xtal" info >/dev/null || fail "the installed xtal info does not run"
fi
echo "install: ok"
