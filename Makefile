# Builds, tests, measures and installs the node host. `make help` lists what there is.

TARGET  := $(or $(CARGO_TARGET_DIR),target)
HOST    := $(shell rustc -vV | sed -n 's/^host: //p')
MUSL    := $(firstword $(subst -, ,$(HOST)))-unknown-linux-musl
BIN     ?= $(TARGET)/release/nox-mesh-host
# The largest static binary in bytes: 3.25 MiB, and a glibc linked in brings 1.5 more.
MAXSIZE := 3407872
MAXSIZE_GLIBC := 4980736

DESTDIR ?=
PREFIX  ?= /usr/local
INSTALLED = $(DESTDIR)$(PREFIX)/bin/nox-mesh-host \
	$(DESTDIR)$(PREFIX)/share/man/man8/nox-mesh-host.8 \
	$(DESTDIR)$(PREFIX)/lib/systemd/system/nox-mesh-host.service \
	$(DESTDIR)$(PREFIX)/lib/systemd/system-preset/80-nox-mesh-host.preset

.PHONY: help build run check lab-build lab lab-shell bench fuzz static install uninstall
.DEFAULT_GOAL := help

help:           ## this list
	@sed -n 's/^\([a-z-]*\): .*## /\1\t/p' Makefile | expand -t 12

build:          ## the release binary
	cargo build --release --locked

# Everything happens under $(RUN); no privilege is needed and nothing outside is touched.
RUN := $(abspath $(TARGET)/run)
run: build      ## apply tests/example.json to a scratch root: plan, apply, apply again
	rm -rf $(RUN) && mkdir -p $(RUN)
	$(BIN) --root $(RUN) plan tests/example.json
	$(BIN) --root $(RUN) apply tests/example.json
	$(BIN) --root $(RUN) apply tests/example.json
	$(BIN) --root $(RUN) plan -q --exit-code tests/example.json
	@echo 'second run: nothing to change; what was made lies in $(RUN)/etc/greetings'

check:          ## formatting, lints, every test; then what was skipped and why
	@tests/check.sh

# The host and the lab: what the tests below and a shell in a machine need.
lab-build:
	cargo build --locked -p nox-mesh-host -p mesh-lab
	$(TARGET)/debug/lab build

lab: lab-build  ## scenarios on machines with a real systemd, which leave nothing behind (root)
	cargo test --locked -p mesh-lab

lab-shell: lab-build ## a shell in such a machine, with the host in it; it goes when you leave
	$(TARGET)/debug/lab shell

N ?=
DIR ?= /var/tmp
bench:          ## speed and memory against a bare loop and cf-agent (N="100 1000", DIR=/path)
	cargo build --release --locked -p nox-mesh-host -p mesh-bench
	$(TARGET)/release/mesh-bench --dir $(DIR) --host $(BIN) $(N)

FUZZ_S ?= 60
fuzz:           ## a minute of each fuzz target (FUZZ_S=seconds)
	@cargo fuzz --version >/dev/null 2>&1 || \
	{ echo 'no cargo-fuzz here: cargo install cargo-fuzz'; exit 1; }
	@cargo +nightly --version >/dev/null 2>&1 || \
	{ echo 'no nightly toolchain here: rustup toolchain install nightly'; exit 1; }
	@for target in $$(ls tests/fuzz/targets | sed 's/\.rs$$//'); do \
	corpus=tests/fuzz/corpus/$$target; mkdir -p $$corpus; \
	cargo +nightly fuzz run --fuzz-dir tests/fuzz $$target $$corpus $(wildcard tests/wire) -- \
	-max_total_time=$(FUZZ_S) -timeout=10 -rss_limit_mb=1024 || exit 1; done

# Only GNU ld extends its own script by another.
UNWINDS_NOTHING = $(if $(findstring GNU ld,$(shell ld --version 2>&1)),-C \
	link-arg=-Wl$(,)-T$(,)$(CURDIR)/src/host/nothing-unwinds.ld -C link-arg=-Wl$(,)--no-eh-frame-hdr)
, = ,

# It travels, and is built small before all: at most $(MAXSIZE) bytes.
static:         ## the release binary with no library to find, and the proof that it is so
	@export RUSTFLAGS='$(UNWINDS_NOTHING)'; \
	if [ -d "$$(rustc --print sysroot)/lib/rustlib/$(MUSL)/lib" ]; then \
	triple=$(MUSL) most=$(MAXSIZE); \
	command -v musl-gcc >/dev/null || export CC_$(subst -,_,$(MUSL))=cc; \
	else triple=$(HOST) most=$(MAXSIZE_GLIBC); \
	RUSTFLAGS="$$RUSTFLAGS -C target-feature=+crt-static"; \
	echo 'no musl target (rustup target add $(MUSL)): linking glibc statically,'; \
	echo 'which still looks names up through the shared libraries of the machine'; fi; \
	cargo build --profile static --locked --target $$triple && \
	bin=$(TARGET)/$$triple/static/nox-mesh-host && size=$$(wc -c <$$bin) && \
	echo "$$bin $$size bytes" && \
	if ! ldd $$bin 2>&1 | grep -qiE 'statically linked|not a (valid )?dynamic'; then \
	echo 'it is not static:'; ldd $$bin; exit 1; fi && \
	if [ $$size -gt $$most ]; then echo "it is larger than $$most bytes"; exit 1; fi

install:        ## binary, man page, unit, preset below $(DESTDIR)$(PREFIX) (BIN=file to choose)
	@test -x $(BIN) || $(MAKE) build
	install -D -m 0755 $(BIN) $(word 1,$(INSTALLED))
	install -D -m 0644 unit/nox-mesh-host.8 $(word 2,$(INSTALLED))
	install -D -m 0644 unit/nox-mesh-host.service $(word 3,$(INSTALLED))
	sed -i 's|=/usr/bin/|=$(PREFIX)/bin/|' $(word 3,$(INSTALLED))
	install -D -m 0644 unit/80-nox-mesh-host.preset $(word 4,$(INSTALLED))

uninstall:      ## takes away what install brought; state and configuration stay
	rm -f $(INSTALLED)
