//! The program: hands its arguments to the library.

use std::process::ExitCode;

use nox_mesh_host::service::errand;
use nox_mesh_host::{cli, machine};

fn main() -> ExitCode {
    machine::set_out();
    let args: Vec<std::ffi::OsString> = std::env::args_os().skip(1).collect();
    if args.first().is_some_and(|first| first == machine::FETCH_ARGUMENT) {
        return machine::fetch_main();
    }
    if args.first().is_some_and(|first| first == machine::LOOK_UP_ARGUMENT) {
        return machine::look_up_main();
    }
    match args.split_first() {
        Some((first, rest)) if first == errand::ERRAND_ARGUMENT => cli::errand_main(rest),
        _ => cli::main(args),
    }
}
