#!/usr/bin/env bash
# Formatting, lints and every test, each even where an earlier one failed. Ends with a verdict on
# each, what was skipped and why, and what is ignored on purpose; exits 1 if any of them failed.
set -uo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
skips=$target/skips
log=$target/check.log
rm -rf "$skips"
mkdir -p "$skips"
: >"$log"
status=0
verdicts=()

# NAME COMMAND...: runs it and keeps what it came to.
step() {
  local name=$1 verdict=ok
  shift
  echo "== $*"
  "$@" 2>&1 | tee -a "$log" || { verdict="FAILED ($*)" status=1; }
  verdicts+=("$name: $verdict")
}

# COMPONENT PACKAGE ARGUMENT...: a step of a part of cargo that may not be installed.
component() {
  local name=$1 package=$2
  shift 2
  if cargo "$name" --version >/dev/null 2>&1; then
    step "$name" cargo "$name" "$@"
  else
    verdicts+=("$name: skipped")
    echo "no cargo $name here: rustup component add $package" >"$skips/$name"
  fi
}

# The tests that ended so (a pattern), a line each, with what was said of it.
ended() { sed -nE "s/^test (.+) \.\.\. $1\$/  \1\2/p" "$log"; }
# How many passed, failed or were ignored, in all test binaries together.
total() {
  sed -nE "s/^test result: .* ([0-9]+) $1;.*/\1/p" "$log" |
    awk '{ sum += $1 } END { print sum + 0, word }' word="$1"
}

component fmt rustfmt --all --check
component clippy clippy --workspace --all-targets --locked -- -D warnings
step tests cargo test --workspace --locked --no-fail-fast

echo
echo 'summary'
printf '  %s\n' "${verdicts[@]}"
echo "tests: $(total passed), $(total failed), $(total ignored)"
ended 'FAILED()'
if [ -z "$(ls "$skips")" ]; then
  echo 'skipped: nothing'
else
  echo "skipped: $(ls "$skips" | wc -l)"
  (cd "$skips" && grep . -- * /dev/null | sed 's/^/  /; s/:/: /')
fi
echo "ignored on purpose: $(ended 'ignored(.*)' | wc -l)"
ended 'ignored(.*)' | sed 's/, /: /' | sort
[ "$status" = 0 ] && echo 'check: passed' || echo 'check: FAILED'
exit "$status"
