# Boots one machine. Runs in a mount and a network namespace of its own, which die with it:
# nothing mounted or plugged here is ever seen in the computer's own tables. Runs as process 1 of
# a pid namespace, so that whatever ends this shell ends the machine (nspawn by itself would
# leave it running).
# Given by the caller: MARK NAME ADDRESS PORT MAC CABLE LOWER DIR, and SWITCH, the switch's network
# namespace as a descriptor that all programs here inherit.
set -eu

# One cgroup tree, version 2, whatever the computer itself uses.
umount -R -l /sys/fs/cgroup 2>/dev/null || true
mount -t cgroup2 cgroup2 /sys/fs/cgroup
cgroup=/sys/fs/cgroup/$MARK
# Of an earlier boot; a cgroup that has handed controllers down takes no process again.
[ ! -e "$cgroup/machine" ] || find "$cgroup/machine" -depth -type d -exec rmdir {} \;
mkdir -p "$cgroup/boot" "$cgroup/machine"
echo 0 > "$cgroup/boot/cgroup.procs"
for controller in $(cat "$cgroup/cgroup.controllers"); do
	echo "+$controller" > "$cgroup/cgroup.subtree_control"
done

# The cable: eth0 here, $PORT on the switch.
# A previous boot's end may still be on the switch: the kernel takes namespaces down late.
ip link set lo up
nsenter --net="$SWITCH" ip link delete "$PORT" 2>/dev/null || true
ip link add eth0 address "$MAC" type veth peer name "$PORT" netns "$SWITCH"
nsenter --net="$SWITCH" ip link set "$PORT" master br0 "$CABLE"
ip address add "$ADDRESS" dev eth0
ip link set eth0 up

# The disk: what the machine writes lies in $DIR/upper and outlives a reboot.
mount -t overlay -o "lowerdir=$LOWER,upperdir=$DIR/upper,workdir=$DIR/work" "$MARK" "$DIR/root"

# nspawn keeps its locks in /run and talks to the init it finds there: neither is wanted.
mount -t tmpfs -o mode=755 tmpfs /run

fuse=
[ ! -e /dev/fuse ] || fuse=--bind=/dev/fuse
# --keep-unit makes a reboot end nspawn (133) instead of looping inside it, so that the next
# boot gets fresh namespaces. docker needs its directory off the overlay. This shell stays
# process 1, which nspawn is not made for being.
export SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 SYSTEMD_NSPAWN_API_VFS_WRITABLE=network
(
	echo 0 > "$cgroup/machine/cgroup.procs"
	exec systemd-nspawn --quiet --boot --directory="$DIR/root" --machine="$NAME" \
		--network-namespace-path=/proc/self/ns/net --register=no --keep-unit --console=pipe \
		--resolv-conf=off --timezone=off --link-journal=no --capability=all \
		--system-call-filter='add_key keyctl bpf' --bind="$DIR/docker:/var/lib/docker" $fuse
) &
wait $!
