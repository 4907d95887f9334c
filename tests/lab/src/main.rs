//! `lab`: machines by hand. Builds the tree, gives a shell in a machine, cleans up.

use lab::Lab;
use std::process::ExitCode;
use std::time::Instant;
use std::{env, fs};

const USAGE: &str = "\
usage: lab build         build the Debian tree, unless it is there
       lab shell [NAME]  boot a machine, with repositories for pacman and apt, and give a
                         shell in it; the machine goes when the shell ends
       lab clean         remove the tree, and what killed runs left
       lab time          say how long a machine takes to boot, reboot and end
       lab check         say whether machines can be had here";

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["build"] => supported().and_then(|()| build()),
        ["shell"] => supported().and_then(|()| shell("lab")),
        ["shell", name] => supported().and_then(|()| shell(name)),
        ["time"] => supported().and_then(|()| time()),
        ["clean"] => clean(),
        ["check"] => supported(),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("lab: {e}");
            ExitCode::FAILURE
        }
    }
}

fn supported() -> Result<(), String> {
    lab::supported().map_err(|lack| lack.to_string())
}

fn build() -> Result<(), String> {
    let begin = Instant::now();
    let place = lab::build()?;
    println!("{} ({:.1} s)", place.display(), begin.elapsed().as_secs_f32());
    Ok(())
}

fn shell(name: &str) -> Result<(), String> {
    let begin = Instant::now();
    let machine = Lab::machine(name);
    eprintln!("{name} is up at {} ({:.1} s)", machine.address(), begin.elapsed().as_secs_f32());
    machine.pacman_repository(&lab::shelf());
    machine.apt_repository(&lab::shelf());
    if let Ok(host) = lab::host_binary() {
        machine.place_host(&host);
        eprintln!("with {}", fs::canonicalize(&host).unwrap_or(host).display());
    }
    machine.shell();
    Ok(())
}

fn time() -> Result<(), String> {
    // Building the tree is not part of any boot.
    lab::build()?;
    let machine = timed("boot", || Lab::machine("timed"));
    timed("reboot", || machine.reboot());
    timed("power cut and boot", || machine.power_cut());
    timed("one command", || drop(machine.run(["true"])));
    timed("pacman repository", || machine.pacman_repository(&lab::shelf()));
    timed("apt repository", || machine.apt_repository(&lab::shelf()));
    timed("end", || drop(machine));
    Ok(())
}

fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let begin = Instant::now();
    let done = work();
    println!("{what}: {:.2} s", begin.elapsed().as_secs_f32());
    done
}

fn clean() -> Result<(), String> {
    for line in lab::sweep() {
        eprintln!("{line}");
    }
    lab::remove()
}
