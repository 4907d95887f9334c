//! `service`: every state that systemctl tells of against everything that can be declared.

use crate::resource::parting::{parting, Ends, Leaving, Parting};
use crate::resource::service::Service;
use crate::resource::{Answer, Due, Follows, Past, Resource, Standing, Step, Trouble, Verdict};
use crate::tool::systemctl::{Active, FileState, Load, Unit, Verb};

const EITHER: [Option<bool>; 3] = [None, Some(false), Some(true)];
const ACTIVE: [Active; 6] = [
    Active::Up,
    Active::Starting,
    Active::StartingAgain,
    Active::Stopping,
    Active::Down,
    Active::Failed,
];
const FILES: [FileState; 12] = [
    FileState::Enabled,
    FileState::EnabledRuntime,
    FileState::Linked,
    FileState::Disabled,
    FileState::Static,
    FileState::Indirect,
    FileState::Generated,
    FileState::Transient,
    FileState::Alias,
    FileState::Masked,
    FileState::Bad,
    FileState::Missing,
];

fn shop(running: Option<bool>, enabled: Option<bool>) -> Service {
    Service { unit: "shop.service".into(), running, enabled, follows: Follows::default() }
}

/// A service that was never started and is disabled.
fn unit() -> Unit {
    Unit {
        id: "shop.service".into(),
        names: "shop.service".into(),
        load: Load::Loaded,
        active: Active::Down,
        file: FileState::Disabled,
        is_stale: false,
        start_stops: "shutdown.target".into(),
        stop_stops: "".into(),
        can_reload: false,
        ends_by_itself: false,
        starts_blindly: true,
        restarts: 0,
        result: "success".into(),
        exit: "".into(),
    }
}

fn verbs(verdict: &Verdict<'_>) -> Vec<&'static str> {
    let word = |step: &Step<'_>| match step {
        Step::Unit { verb, .. } => verb.word(),
        Step::ReloadManager => "daemon-reload",
        other => panic!("{other:?}"),
    };
    verdict.steps.iter().map(word).collect()
}

fn judge<'s>(service: &'s Service, unit: &Unit, past: &Past<'_>) -> Result<Verdict<'s>, Trouble> {
    service.judge(&Answer::Unit(unit.clone()), past)
}

fn due(due: Due) -> Past<'static> {
    Past { due, ..Past::NONE }
}

/// The machine after these steps, were it to do as it is told.
fn obey(unit: &Unit, verdict: &Verdict<'_>) -> Unit {
    let mut after = unit.clone();
    for step in &verdict.steps {
        match step {
            Step::ReloadManager => after.is_stale = false,
            Step::Unit { verb: Verb::Start | Verb::Restart, .. } => after.active = Active::Up,
            Step::Unit { verb: Verb::Stop, .. } => after.active = Active::Down,
            Step::Unit { verb: Verb::Enable, .. } => after.file = FileState::Enabled,
            Step::Unit { verb: Verb::Disable, .. } => after.file = FileState::Disabled,
            _ => {}
        }
    }
    after
}

//
#[test]
fn whatever_is_found_ends_as_declared_or_in_a_failure() {
    let mut count = 0;
    for (running, enabled) in EITHER.iter().flat_map(|one| EITHER.map(|two| (*one, two))) {
        let service = shop(running, enabled);
        for (active, file) in ACTIVE.iter().flat_map(|one| FILES.map(|two| (*one, two))) {
            for (is_stale, owed) in [
                (false, Due::Nothing),
                (true, Due::Nothing),
                (false, Due::Reload),
                (true, Due::Restart),
            ] {
                let found = Unit { active, file, is_stale, ..unit() };
                let Ok(verdict) = judge(&service, &found, &due(owed)) else { continue };
                count += 1;
                assert_eq!(verdict.steps.is_empty(), verdict.detail.is_empty(), "{found:?}");
                let after = obey(&found, &verdict);
                if let Ok(again) = judge(&service, &after, &Past::NONE) {
                    assert!(again.steps.is_empty(), "{service:?}: {after:?}: {:?}", again.steps);
                    let up = after.active == Active::Up;
                    assert!(running.is_none_or(|running| running == up), "{after:?}");
                    let on = after.file == FileState::Enabled;
                    assert!(enabled.is_none_or(|enabled| enabled == on), "{after:?}");
                }
            }
        }
    }
    assert!(count > 1000, "only {count} of them could be");
}

#[test]
fn each_state_has_its_step() {
    let runs = shop(Some(true), None);
    for (active, owed, step) in [
        (Active::Up, Due::Nothing, None),
        (Active::Up, Due::Restart, Some("restart")),
        // It cannot reload.
        (Active::Up, Due::Reload, Some("restart")),
        (Active::Down, Due::Restart, Some("start")),
        (Active::Failed, Due::Nothing, Some("start")),
        (Active::Starting, Due::Nothing, Some("start")),
        (Active::Starting, Due::Restart, Some("start")),
        (Active::Stopping, Due::Nothing, Some("start")),
        (Active::StartingAgain, Due::Restart, Some("restart")),
    ] {
        let found = Unit { active, ..unit() };
        let verdict = judge(&runs, &found, &due(owed)).unwrap();
        assert_eq!(verbs(&verdict), Vec::from_iter(step), "{active:?} {owed:?}");
        let starts = step.map_or(Due::Nothing, |_| Due::Restart);
        assert_eq!(verdict.refreshes, starts, "{active:?} {owed:?}");
    }
    // What was under way before a change may have read the old already.
    let found = Unit { active: Active::Starting, can_reload: true, ..unit() };
    for owed in [Due::Reload, Due::Restart] {
        let verdict = judge(&runs, &found, &Past { due_under_way: owed, ..due(owed) }).unwrap();
        assert_eq!((verbs(&verdict), verdict.refreshes), (vec!["restart"], Due::Restart));
    }
    let can_reload = Unit { active: Active::Up, can_reload: true, ..unit() };
    let verdict = judge(&runs, &can_reload, &due(Due::Reload)).unwrap();
    assert_eq!((verbs(&verdict), verdict.refreshes), (vec!["reload"], Due::Reload));
    // What does not run, and need not, takes in everything when it starts.
    let any = shop(None, None);
    assert!(judge(&any, &unit(), &due(Due::Restart)).unwrap().steps.is_empty());
    let verdict = judge(&any, &can_reload, &due(Due::Restart)).unwrap();
    assert_eq!(verbs(&verdict), ["restart"]);
}

#[test]
fn a_file_that_changed_is_read_before_it_is_believed() {
    let stale = Unit { is_stale: true, ends_by_itself: true, file: FileState::Static, ..unit() };
    let both = shop(Some(true), Some(true));
    let verdict = judge(&both, &stale, &Past::NONE).unwrap();
    assert_eq!(verbs(&verdict), ["daemon-reload", "enable", "start"]);
    let known = Unit { is_stale: false, ..stale };
    assert!(judge(&both, &known, &Past::NONE).unwrap_err().cause.contains("oneshot"));
}

//
#[test]
fn what_would_stop_the_host_is_not_done() {
    let all = Unit { start_stops: "a.service nox-mesh-host.service".into(), ..unit() };
    let trouble = judge(&shop(Some(true), None), &all, &Past::NONE).unwrap_err();
    assert!(trouble.touches_host && trouble.cause.contains("host's own unit"), "{trouble}");
    let base = Unit { active: Active::Up, stop_stops: "nox-mesh-host.service".into(), ..unit() };
    assert!(judge(&shop(Some(false), None), &base, &Past::NONE).unwrap_err().touches_host);
    assert!(judge(&shop(Some(true), None), &base, &due(Due::Restart)).unwrap_err().touches_host);
    assert!(judge(&shop(Some(true), None), &base, &Past::NONE).unwrap().steps.is_empty());
}

//
#[test]
fn what_was_found_first_is_what_is_put_back() {
    let up = Unit { active: Active::Up, file: FileState::Enabled, ..unit() };
    let before = |service: &Service, found: &Unit, held: Option<&str>| {
        let past = Past { before: held, ..Past::NONE };
        judge(service, found, &past).unwrap().before
    };
    let both = shop(Some(true), Some(true));
    assert_eq!(before(&both, &unit(), None).as_deref(), Some("stopped disabled"));
    assert_eq!(before(&both, &up, None).as_deref(), Some("running enabled"));
    // Corrected later, it still was as it was at first; a part that came later is seen then.
    assert_eq!(before(&both, &unit(), Some("running enabled")).as_deref(), Some("running enabled"));
    assert_eq!(before(&both, &unit(), Some("running")).as_deref(), Some("running disabled"));
    // A part that is no longer declared is nobody's business any more.
    let runs = shop(Some(true), None);
    assert_eq!(before(&runs, &up, Some("stopped disabled")).as_deref(), Some("stopped"));
    // Held stopped, nothing was started that would have to be stopped.
    let off = shop(Some(false), Some(false));
    assert_eq!(before(&off, &unit(), None), None);
    assert_eq!(before(&off, &unit(), Some("stopped disabled")).as_deref(), Some(""));
}

//
#[test]
fn a_unit_that_leaves_is_left_as_the_host_found_it() {
    let Parting::Undo(undo) = parting("service", Standing::Adopted) else { panic!("it is undone") };
    let leave = |before: Option<&'static str>, found: Unit| {
        let it = Leaving { name: "shop.service", standing: Standing::Adopted, before };
        let farewell = undo.judge(&it, &Answer::Unit(found)).unwrap();
        let verdict = Verdict { steps: farewell.steps, ..Verdict::default() };
        (verbs(&verdict), farewell.ends)
    };
    let up = || Unit { active: Active::Up, file: FileState::Enabled, ..unit() };
    assert_eq!(leave(Some("stopped disabled"), up()), (vec!["stop", "disable"], Ends::Removed));
    assert_eq!(leave(Some("stopped disabled"), unit()), (vec![], Ends::Removed));
    assert_eq!(leave(Some("stopped enabled"), up()), (vec!["stop"], Ends::Removed));
    assert_eq!(leave(Some("running disabled"), up()), (vec!["disable"], Ends::Removed));
    for nothing in [None, Some(""), Some("running enabled"), Some("running"), Some("nonsense")] {
        assert_eq!(leave(nothing, up()), (vec![], Ends::Forgotten), "{nothing:?}");
    }
    let gone = Unit { load: Load::NotFound, file: FileState::Missing, ..unit() };
    assert_eq!(leave(Some("stopped disabled"), gone), (vec![], Ends::Removed));
    let other = Unit { id: "other.service".into(), ..up() };
    assert_eq!(leave(Some("stopped disabled"), other), (vec![], Ends::Left));
}
