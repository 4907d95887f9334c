# Fills the directory $DEST with the Debian tree that every lab machine starts from.
# Given by the caller: CGROUP, DEST, INCLUDE (packages, commas between), MIRROR (may be empty).
set -eu
echo $$ > "$CGROUP/cgroup.procs"

drop() { printf -- '--dpkgopt=path-exclude=/usr/share/%s/*\n' "$1"; }

# $MIRROR unquoted: no argument at all when it is empty.
mmdebstrap --mode=root --variant=minbase --format=directory --quiet --skip=check/empty \
	--include="$INCLUDE" --dpkgopt=force-unsafe-io $(drop doc) $(drop man) $(drop locale) \
	--aptopt='APT::Install-Recommends "false"' --aptopt='Acquire::Languages "none"' \
	bookworm "$DEST" $MIRROR

# Nothing in a machine reaches outside: packages come from the repository a scenario puts there.
rm -rf "$DEST"/etc/apt/sources.list "$DEST"/etc/apt/sources.list.d/* "$DEST"/etc/resolv.conf
rm -rf "$DEST"/var/lib/apt/lists/* "$DEST"/var/cache/apt/*.bin
: > "$DEST/etc/apt/sources.list"
cat > "$DEST/etc/pacman.conf" <<'CONF'
[options]
HoldPkg = pacman
Architecture = auto
SigLevel = Never
CONF

# Daemons wait until a scenario starts them; timers would make two equal runs differ.
for unit in containerd.service docker.service docker.socket docker-registry.service \
	mosquitto.service; do
	[ ! -e "$DEST/lib/systemd/system/$unit" ] || chroot "$DEST" systemctl --quiet disable "$unit"
done
for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer \
	e2scrub_reap.service fstrim.timer getty@.service console-getty.service \
	systemd-networkd-wait-online.service; do
	ln -sf /dev/null "$DEST/etc/systemd/system/$unit"
done

# An empty id is filled in at each machine's first boot. The two stamps keep that boot from
# redoing what the package installation has just done (ConditionNeedsUpdate=).
: > "$DEST/etc/machine-id"
touch -r "$DEST/usr" "$DEST/etc/.updated" "$DEST/var/.updated"
