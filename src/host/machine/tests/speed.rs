//! Measurements, run by name: `cargo test --release -- --ignored --nocapture speed`.

use std::io::Read;
use std::time::Instant;

use super::super::place::{Entry as Placed, Staged};
use super::super::sync;
use super::*;
use crate::resource::Step;

fn entries(group: &[Staged]) -> Vec<&Placed> {
    group.iter().filter_map(|staged| staged.0.as_ref()).collect()
}

const FILES: usize = 10_000;

/// Processor time of this thread: what a shared machine's other work does not add to.
fn spent() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable and of the size that the kernel fills.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) }, 0);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

fn cost(run: &mut dyn FnMut()) -> Duration {
    let began = spent();
    run();
    spent() - began
}

#[test]
#[ignore = "a measurement"]
fn looking_at_files_costs_little_more_than_reading_them() {
    let scratch = Scratch::new();
    let contents = vec![b'x'; 200];
    let paths: Vec<RootPath> =
        (0..FILES).map(|n| path(&format!("/srv/dir-{:02}/conf/file-{n}", n / 100))).collect();
    for at in &paths {
        let at = scratch.at(at.as_str());
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        std::fs::write(at, &contents).unwrap();
    }
    let absolute: Vec<PathBuf> = paths.iter().map(|at| scratch.at(at.as_str())).collect();
    let mut buffer = vec![0; 4096];
    let mut bare = || {
        for at in &absolute {
            let mut file = std::fs::File::open(at).unwrap();
            let size = file.metadata().unwrap().len();
            let read = file.read(&mut buffer).unwrap();
            assert!(read as u64 == size && buffer[..read] == contents[..]);
        }
    };
    let mut machine = scratch.machine();
    let access = Access::default();
    let mut ours = || {
        for path in &paths {
            let question =
                Question::Path { path, holds: Some(Holds::Bytes(&contents)), access: &access };
            let Answer::Path(answer) = machine.ask(&question, LIMIT).unwrap() else { panic!() };
            let Found::Entry { kind, .. } = answer.found else { panic!() };
            assert_eq!(kind, Entry::File { size: 200, holds: Some(true) });
        }
    };
    // In turns, so that what disturbs one disturbs the other.
    let turns: Vec<_> = (0..20).map(|_| (cost(&mut bare), cost(&mut ours))).collect();
    let bare = turns.iter().map(|(bare, _)| *bare).min().unwrap();
    let ours = turns.iter().map(|(_, ours)| *ours).min().unwrap();
    let ratio = ours.as_secs_f64() / bare.as_secs_f64();
    println!("{FILES} files: bare {bare:?}, ours {ours:?}, {ratio:.2} times");
    assert!(ratio < 1.2, "{ratio:.2}");
}

#[test]
#[ignore = "a measurement"]
fn one_sync_of_the_file_system_is_cheaper_than_many_of_files() {
    let scratch = Scratch::new();
    let mut machine = scratch.machine();
    for count in [1, 2, 4, 8, 16, 32, 64, 128] {
        let paths: Vec<RootPath> = (0..count).map(|n| path(&format!("/file-{n}"))).collect();
        let mut time = |sync: fn(&[super::super::Staged]) -> bool| {
            let stage = |at| {
                machine.stage(&Step::Place(place(at, Make::Bytes(&[b'x'; 4000]), true)), LIMIT)
            };
            let mut group: Vec<_> = paths.iter().map(stage).map(Result::unwrap).collect();
            let began = Instant::now();
            assert!(sync(&group));
            group.iter_mut().for_each(|staged| machine.commit(staged).unwrap());
            assert!(sync(&group));
            began.elapsed()
        };
        let mut best = |sync| (0..5).map(|_| time(sync)).min().unwrap();
        let each = best(|group| sync::one_by_one(&entries(group)).is_ok());
        let whole = best(|group| sync::whole_systems(&entries(group)).is_ok());
        println!("{count:4} files: one by one {each:?}, the whole file system {whole:?}");
    }
}
