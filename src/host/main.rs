//! The binary: hands over to what the command line asks for.

use std::process::ExitCode;

use nox_mesh_host::machine;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == machine::FETCH_ARGUMENT) {
        return machine::fetch_main();
    }
    ExitCode::SUCCESS
}
