#!/bin/sh
# Run tests of build/ on an emulated processor with AVX-512, VNNI, VBMI and BF16: emulate.sh [TEST[:CASE] ...]
# Bochs, a kernel and what makes a disc of both are fetched from Debian 13 into build-emulate, outside the system. What
# takes a second on a processor takes minutes here: name a case of a long test. Tiles of AMX are switched off: Bochs 3.0
# lacks what Linux wants for them. Says so and does nothing where a part is missing.
set -eu
cd "$(dirname "$0")/.."
folder=$PWD/build-emulate
root=$folder/root
[ $# -gt 0 ] || set -- test_matmul test_matmul_rows test_attention test_golden:avx512

skip() {
    echo "emulate: skipped, $1"
    exit 0
}

for program in apt-get dpkg-deb gzip ldd; do
    command -v "$program" > /dev/null || skip "no $program"
done

# From where the system has its own packages; lists and packages of the other release are kept apart from them.
fetch() {
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Component: main' 'Created-By: Packages' |
        grep -v security | sort -u | head -1)
    [ -n "$mirror" ] || { echo "the system has no source of packages" >&2; return 1; }
    apt=$folder/apt
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
    : > "$apt/status"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie main" \
        > "$apt/sources"
    set -- -q -y -o APT::Architecture=amd64 -o APT::Architectures::=amd64 -o Dir::Etc::SourceList="$apt/sources" \
        -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$apt/lists" -o Dir::State::Status="$apt/status" \
        -o Dir::Cache="$apt/cache" -o APT::Sandbox::User=root -o Debug::NoLocking=1
    apt-get "$@" update && apt-get "$@" --no-install-recommends --download-only install bochs bochs-term bochsbios \
        busybox-static genisoimage isolinux linux-image-cloud-amd64 syslinux-common vgabios && (
        for deb in "$apt/cache/archives"/*.deb; do
            dpkg-deb -x "$deb" "$root.new" || exit 1
        done
    ) && mv "$root.new" "$root"
}

if [ ! -d "$root" ]; then
    mkdir -p "$folder"
    fetch > "$folder/fetch.log" 2>&1 || skip "the packages can't be fetched (build-emulate/fetch.log)"
fi
libraries=$root/usr/lib/x86_64-linux-gnu
run() {
    "$libraries/ld-linux-x86-64.so.2" --library-path "$libraries:$libraries/bochs/plugins" "$@"
}

# What boots: the tests, their libraries and fixtures at the paths that they have here.
guest=$folder/guest
disc=$folder/disc
rm -rf "$guest" "$disc"
mkdir -p "$guest/bin" "$guest/proc" "$guest/sys" "$guest/dev" "$guest/tmp" "$guest/tests" "$guest$PWD/tests/fixtures" \
    "$disc/isolinux"
cp "$root/usr/bin/busybox" "$guest/bin/"
cp -r tests/fixtures/golden "$guest$PWD/tests/fixtures/"
{
    cat << 'END'
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
END
    for test in "$@"; do
        program=${test%%:*}
        case "$test" in *:*) only=${test#*:} ;; *) only= ;; esac
        echo "PERIGEE_TEST='$only' /tests/$program; echo \"emulate: $test: \$?\""
        [ -x "build/tests/$program" ] || { echo "emulate: no build/tests/$program" >&2; exit 1; }
        cp "build/tests/$program" "$guest/tests/"
        ldd "build/tests/$program" | grep -o '/[^ ]*' | while read -r library; do
            mkdir -p "$guest$(dirname "$library")"
            cp -L "$library" "$guest$library"
        done
    done
    echo 'echo emulate: end; sleep 1000000'
} > "$guest/init"
chmod +x "$guest/init"
(cd "$guest" && find . | "$root/usr/bin/busybox" cpio -o -H newc 2> /dev/null | gzip -1) > "$disc/initrd.gz"
cp "$root"/boot/vmlinuz-* "$disc/vmlinuz"
cp "$root/usr/lib/ISOLINUX/isolinux.bin" "$root/usr/lib/syslinux/modules/bios/ldlinux.c32" "$disc/isolinux/"
cat > "$disc/isolinux/isolinux.cfg" << 'END'
DEFAULT perigee
LABEL perigee
 KERNEL /vmlinuz
 APPEND initrd=/initrd.gz console=ttyS0 quiet mitigations=off nokaslr no5lvl acpi=off tsc=reliable clearcpuid=amx_tile,amx_bf16,amx_int8
END
run "$root/usr/bin/genisoimage" -quiet -R -o "$folder/disc.iso" -b isolinux/isolinux.bin -c isolinux/boot.cat \
    -no-emul-boot -boot-load-size 4 -boot-info-table "$disc"
cat > "$folder/bochsrc" << END
display_library: rfb, options="timeout=0"
memory: guest=2048, host=2048
romimage: file=$root/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=$root/usr/share/vgabios/vgabios-stdvga.bin
cpu: model=sapphire_rapids, count=1, ips=100000000, reset_on_triple_fault=0
clock: sync=none
ata0: enabled=1, ioaddr1=0x1f0, ioaddr2=0x3f0, irq=14
ata0-master: type=cdrom, path=$folder/disc.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev=$folder/serial.txt
log: $folder/bochs.log
panic: action=fatal
error: action=ignore
info: action=ignore
END
rm -f "$folder/serial.txt"
LTDL_LIBRARY_PATH=$libraries/bochs/plugins BXSHARE=$root/usr/share/bochs
export LTDL_LIBRARY_PATH BXSHARE
# its display would be open to whoever reaches this machine
alone="unshare --map-root-user --net"
$alone true 2> "$folder/alone.log" || skip "no network of its own for it (build-emulate/alone.log)"
$alone "$libraries/ld-linux-x86-64.so.2" --library-path "$libraries:$libraries/bochs/plugins" \
    "$root/usr/bin/bochs-bin" -q -f "$folder/bochsrc" > "$folder/bochs.out" 2>&1 &
bochs=$!
trap 'kill "$bochs" 2> /dev/null || true' EXIT
trap 'exit 1' HUP INT TERM # or the emulator, which ignores interrupts, would go on
until grep -q '^emulate: end' "$folder/serial.txt" 2> /dev/null; do
    kill -0 "$bochs" 2> /dev/null || { tail -n 5 "$folder/bochs.log" >&2; exit 1; }
    sleep 2
done
tr -d '\r' < "$folder/serial.txt" | grep -v '^\['
# every test said 0
[ "$(tr -d '\r' < "$folder/serial.txt" | grep -c '^emulate: .*: 0$')" = $# ]
