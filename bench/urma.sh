# SPDX-License-Identifier: MIT
# The rows of URMA, for run.sh, which reads this: rate of 8 bytes and bandwidth of 64 KiB over each
# path, beside CDMA over the same one; half the round trip of a message.
for op in write read; do
	measure urma_$op.map1 urma --memory alloc --op $op --batch 1 urma cdma
	for path in map cma ring tcp; do
		memory=malloc
		[ $path != map ] || memory=alloc
		for size in 8 65536; do
			XTAL_PATHS=$path measure urma_$op.$path$size urma --memory $memory --op $op \
				--size $size --batch 16 urma cdma
		done
	done
done
for path in ring tcp; do # messages travel so; there is no shorter way for them
	for size in 8 65536; do
		XTAL_PATHS=$path measure urma_send.$path$size urma --memory malloc --op send \
			--size $size --batch 16 urma
	done
done
XTAL_PATHS=ring measure message.ring message --memory malloc raw urma
XTAL_PATHS=ring measure message.alloc message --memory alloc raw urma
XTAL_PATHS=tcp measure message.tcp message --memory malloc socket urma
