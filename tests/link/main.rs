//! The link against a real mosquitto: what it takes to be up, what comes over it, and what every
//! refusal says.

#[path = "../support/mod.rs"]
mod support;

mod broker;
mod driver;
mod refusals;
mod talk;

/// What these tests drive is here; where it is not, the skip is told, and in CI it is a failure.
fn can_run(test: &str) -> bool {
    use support::{skip, Lacks};
    // mosquitto 2.0.11 knows no --version and exits 3 for -h; that it starts is what matters.
    let starts = |program: &str| std::process::Command::new(program).arg("-h").output().is_ok();
    let lacking = ["mosquitto", "mosquitto_pub", "openssl"].into_iter().find(|it| !starts(it));
    if let Some(program) = lacking {
        skip(test, &Lacks::Program(program));
    }
    lacking.is_none()
}
