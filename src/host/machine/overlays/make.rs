//! Making a WireGuard interface: the kernel's, or where that has none, one in user space.
//!
//! Which of the two it is, the kernel's answer decides each time: an update may bring the module.

use std::time::Duration;

use super::run;
use crate::machine::child::{self, Call, How, Unrun};
use crate::machine::clock::random_id;
use crate::machine::units;
use crate::tool::{ip, systemctl};

/// Makes the interface `name`.
pub(super) fn make(name: &str, limit: Duration) -> Result<(), String> {
    let argv = ip::make(name);
    let ended = child::run(Call::new(&argv), limit).map_err(Unrun::into_cause)?;
    let said = String::from_utf8_lossy(ended.err.bytes()).into_owned();
    match ended.how {
        How::Exited(0) => Ok(()),
        How::Exited(_) if ip::says_no_such_kind(&said) => {
            let started = match units::is_managed() {
                true => in_unit(name, limit),
                // It leaves us by itself.
                false => run(&ip::make_in_user_space(name), limit),
            };
            started.map_err(|cause| format!("this kernel has no WireGuard, and {cause}"))
        }
        _ => Err(format!("ip {}", ended.said())),
    }
}

/// Starts wireguard-go in a unit of its own, which ends with the interface. It has made the
/// interface, and answers for it, once it has forked (wireguard-go 0.0.20220316).
fn in_unit(name: &str, limit: Duration) -> Result<(), String> {
    // No unit that ended a moment ago, or is about to, may have the name still.
    let unit = systemctl::unit_name("mesh-overlay", name, &random_id()[..8]);
    let argv = ip::make_in_user_space(name);
    let start = systemctl::start_forking(&unit, &argv);
    let start: Vec<&str> = start.iter().map(|word| &**word).collect();
    let ended = child::run(Call::new(&start), limit).map_err(Unrun::into_cause)?;
    if ended.how == How::Exited(0) {
        return Ok(());
    }
    // Its own words alone, without the manager's about it.
    let last = units::log_of(&format!("_SYSTEMD_UNIT={unit}")).pop();
    let log = last.map_or_else(String::new, |line| format!("; its log ends {line}"));
    Err(format!("{} did not start: systemd-run {}{log}", argv[0], ended.said()))
}
