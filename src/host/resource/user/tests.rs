//! What is found of a user, judged: for every state that the account files can be in.

use super::*;
use crate::resource::account::{FoundKeys, UserAnswer};
use crate::tool::shadow::User as Line;

const OPEN: Login = Login { locked: false, restorable: false, let_go: false };
const LET_GO: Login = Login { locked: true, restorable: true, let_go: true };

fn bob() -> User {
    let (groups, keys) = (Some(["adm".into(), "shop".into()].into()), Some(["k1".into()].into()));
    User {
        name: "bob".into(),
        uid: Some(7),
        group: Some(Principal::Id(8)),
        groups,
        home: Some("/home/bob".into()),
        shell: Some("/bin/sh".into()),
        comment: Some("Bob".into()),
        system: false,
        keys,
    }
}

/// Bob as he is declared.
fn found() -> FoundUser {
    let line = Line {
        uid: 7,
        gid: 8,
        comment: "Bob".into(),
        home: Some("/home/bob".into()),
        shell: "/bin/sh".into(),
    };
    FoundUser {
        line,
        groups: vec!["shop".into(), "adm".into()],
        has_group: true,
        login: Shadow::Line(OPEN),
        has_home: Some(true),
        keys: Ok(FoundKeys { lines: vec!["k1".into()], exposed: false }),
    }
}

fn answer(user: Whereabouts<Box<FoundUser>>) -> Answer {
    Answer::User(UserAnswer { user, gid: Some(8), namesake: None })
}

fn here(change: impl FnOnce(&mut FoundUser)) -> Answer {
    let mut found = found();
    change(&mut found);
    answer(Whereabouts::Here(Box::new(found)))
}

fn past(standing: Standing) -> Past<'static> {
    Past { standing, ..Past::NONE }
}

/// The steps, as a person would write them.
fn told(steps: &[Step]) -> Vec<String> {
    let one = |step: &Step| match step {
        Step::Account(call) => format!("{} {}", call.tool, call.arguments.join(" ")),
        Step::Home(user) => format!("home {user}"),
        Step::Keys { user, keys, home } => {
            format!("keys {user} {} {}", keys.len(), home.as_deref().unwrap_or("own"))
        }
        other => panic!("{other:?}"),
    };
    steps.iter().map(one).collect()
}

fn steps(user: &User, answer: &Answer, standing: Standing) -> Vec<String> {
    told(&user.judge(answer, &past(standing)).unwrap().steps)
}

const ALL: [Standing; 3] = [Standing::Unowned, Standing::Created, Standing::Adopted];

//
#[test]
fn what_is_as_declared_needs_no_step() {
    for standing in ALL {
        let verdict = bob();
        let verdict = verdict.judge(&here(|_| {}), &past(standing)).unwrap();
        assert!(verdict.steps.is_empty() && verdict.existed && verdict.detail.is_empty());
    }
    let bare = User {
        uid: None,
        group: None,
        groups: None,
        home: None,
        shell: None,
        comment: None,
        keys: None,
        ..bob()
    };
    let other = here(|it| {
        it.line.comment = "other".into();
        it.groups.clear();
        it.keys = Err(Trouble::new("read keys", "it is a link"));
    });
    assert_eq!(steps(&bare, &other, Standing::Adopted), [""; 0], "what is absent is unmanaged");
}

#[test]
fn each_thing_that_differs_is_changed_and_nothing_else() {
    type Case = (fn(&mut FoundUser), &'static [&'static str]);
    let cases: [Case; 7] = [
        (|it| it.line.gid = 9, &["usermod --gid 8 -- bob"]),
        (|it| drop(it.groups.pop()), &["usermod --groups adm,shop -- bob"]),
        (|it| it.groups.push("wheel".into()), &["usermod --groups adm,shop -- bob"]),
        (|it| it.line.shell.clear(), &["usermod --shell /bin/sh -- bob"]),
        (|it| it.line.comment.clear(), &["usermod --comment Bob -- bob"]),
        (|it| it.keys = Ok(FoundKeys::default()), &["keys bob 1 own"]),
        (
            |it| it.keys = Ok(FoundKeys { lines: vec!["k1".into()], exposed: true }),
            &["keys bob 1 own"],
        ),
    ];
    for (change, wanted) in cases {
        for standing in ALL {
            assert_eq!(steps(&bob(), &here(change), standing), wanted);
        }
    }
}

#[test]
fn a_home_is_changed_before_the_keys_in_the_old_one_go() {
    let moved = here(|it| it.line.home = Some("/old".into()));
    let wanted = ["usermod --home /home/bob -- bob", "keys bob 0 /old", "keys bob 1 own"];
    assert_eq!(steps(&bob(), &moved, Standing::Created), wanted);
    let without = User { keys: Some([].into()), ..bob() };
    let bare = here(|it| {
        it.line.home = Some("/old".into());
        it.keys = Ok(FoundKeys::default());
    });
    let wanted = ["usermod --home /home/bob -- bob", "keys bob 0 own"];
    assert_eq!(steps(&without, &bare, Standing::Adopted), wanted);
    let unmanaged = User { keys: None, ..bob() };
    assert_eq!(steps(&unmanaged, &moved, Standing::Adopted), wanted[..1]);
}

//
#[test]
fn only_what_the_host_made_is_completed() {
    let half = || {
        here(|it| {
            it.login = Shadow::Missing;
            it.has_home = Some(false);
            it.has_group = false;
        })
    };
    let user = User { group: None, ..bob() };
    let wanted = ["usermod --expiredate  -- bob", "groupadd --gid 8 -- bob", "home bob"];
    assert_eq!(steps(&user, &half(), Standing::Created), wanted);
    for standing in [Standing::Unowned, Standing::Adopted] {
        assert_eq!(steps(&user, &half(), standing), [""; 0]);
    }
    let nameless = |gid| {
        here(|it| {
            it.line.gid = gid;
            it.has_group = false;
        })
    };
    let user = User { group: None, ..bob() };
    let first = |gid| steps(&user, &nameless(gid), Standing::Created).swap_remove(0);
    assert_eq!(first(7), "groupadd --gid 7 -- bob");
    assert_eq!(first(100), "usermod --gid 8 -- bob", "the machine's default, perhaps");
    let system = User { system: true, ..bob() };
    let no_home = here(|it| it.has_home = Some(false));
    assert_eq!(steps(&system, &no_home, Standing::Created), [""; 0]);
    let no_shadow = here(|it| it.login = Shadow::Unused);
    assert_eq!(steps(&bob(), &no_shadow, Standing::Created), [""; 0]);
    let unseen = here(|it| it.has_home = None);
    assert_eq!(steps(&bob(), &unseen, Standing::Created), [""; 0]);
}

#[test]
fn the_hosts_own_lock_is_opened_and_no_other() {
    let user = bob();
    let locked = |login| here(|it| it.login = Shadow::Line(login));
    let verdict = user.judge(&locked(LET_GO), &past(Standing::Unowned));
    let verdict = verdict.unwrap();
    assert_eq!(told(&verdict.steps), ["usermod --unlock --expiredate  -- bob"]);
    assert!(!verdict.existed, "what the host made is its own again");
    let adopted = user.judge(&locked(LET_GO), &past(Standing::Adopted)).unwrap();
    assert!(adopted.existed && adopted.steps.len() == 1);
    for login in [Login { restorable: false, ..LET_GO }, Login { locked: false, ..LET_GO }] {
        let login = Login { restorable: login.restorable && login.locked, ..login };
        let wanted = ["usermod --expiredate  -- bob"];
        assert_eq!(steps(&user, &locked(login), Standing::Unowned), wanted);
    }
    // `usermod --lock`, with or without `--expiredate 1`: a person's.
    let theirs = Login { let_go: false, ..LET_GO };
    assert_eq!(steps(&user, &locked(theirs), Standing::Created), [""; 0]);
}

#[test]
fn who_is_not_there_is_made_with_a_home_where_one_is_needed() {
    let made = |user: &User, namesake| {
        let user_answer = UserAnswer { user: Whereabouts::Nowhere, gid: None, namesake };
        told(&user.judge(&Answer::User(user_answer), &Past::NONE).unwrap().steps)
    };
    let bare = User { group: None, groups: None, home: None, shell: None, comment: None, ..bob() };
    assert_eq!(made(&bare, None), ["useradd --uid 7 --create-home -- bob", "keys bob 1 own"]);
    let no_keys = User { keys: None, uid: None, ..bare };
    assert_eq!(made(&no_keys, Some(5)), ["useradd --gid 5 --create-home -- bob"]);
    let system = User { system: true, ..no_keys };
    assert_eq!(made(&system, None), ["useradd --system --no-create-home -- bob"]);
    let system = User { keys: Some(["k".into()].into()), ..system };
    assert_eq!(made(&system, None)[0], "useradd --system --create-home -- bob");
}

#[test]
fn what_cannot_be_made_to_match_says_why() {
    let trouble = |user: &User, answer| user.judge(&answer, &Past::NONE).unwrap_err().to_string();
    let other = User { uid: Some(6), ..bob() };
    assert!(trouble(&other, here(|_| {})).contains("its number is 7 and not 6"));
    assert!(trouble(&bob(), answer(Whereabouts::Elsewhere)).contains("a directory service"));
    let link = here(|it| it.keys = Err(Trouble::new("read keys", "it is a link")));
    assert_eq!(trouble(&bob(), link), "read keys: it is a link");
    assert!(trouble(&bob(), Answer::Sysctl(None)).contains("another question"));
}

//
#[test]
fn letting_go_locks_first_whatever_the_home_is_like() {
    let it = Leaving { name: "bob", standing: Standing::Created, before: None };
    let part = |change: &dyn Fn(&mut FoundUser)| LockOut.judge(&it, &here(change));
    let lock = "usermod --lock --expiredate 2 -- bob";
    assert_eq!(told(&part(&|_| {}).unwrap().steps), [lock, "keys bob 0 own"]);

    let broken = |found: &mut FoundUser| found.keys = Err(Trouble::new("read keys", "a link"));
    assert_eq!(told(&part(&broken).unwrap().steps), [lock]);
    let trouble = part(&|found| {
        broken(found);
        found.login = Shadow::Line(LET_GO);
    });
    assert_eq!(trouble.unwrap_err().to_string(), "read keys: a link");

    for login in [Shadow::Unused, Shadow::Missing, Shadow::Line(Login { locked: false, ..LET_GO })]
    {
        assert_eq!(told(&part(&|found| found.login = login).unwrap().steps)[0], lock);
    }
    let done = part(&|found| {
        found.login = Shadow::Line(LET_GO);
        found.keys = Ok(FoundKeys::default());
    });
    let done = done.unwrap();
    assert!(done.steps.is_empty() && done.ends == Ends::Left);
    let gone = LockOut.judge(&it, &answer(Whereabouts::Nowhere)).unwrap();
    assert!(gone.steps.is_empty() && gone.ends == Ends::Removed);
}
