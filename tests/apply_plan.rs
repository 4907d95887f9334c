//! A plan says what apply then does, and changes nothing; tried on many small trees.

mod support;

use std::collections::BTreeMap;
use std::fs;

use support::root::Root;
use support::Dice;

fn file(id: &str, text: &str) -> String {
    format!(r#"{{"id":"{id}","type":"file","path":"/s/{id}","content":"{text}"}}"#)
}

#[test]
fn a_plan_changes_nothing_and_makes_no_store() {
    let root = Root::new("nothing");
    let before = root.tree();
    let run = root.plan(&file("a", "1\\n"));
    assert_eq!((run.code, run.outcomes()), (10, vec!["a created".to_string()]));
    assert_eq!(run.report()["schema"], "plan/1");
    assert_eq!(root.tree(), before);
    root.converge(&file("a", "1\\n"));
    let before = root.tree();
    assert_eq!(root.plan(&file("a", "1\\n")).code, 0);
    assert_eq!(root.plan(&file("b", "1\\n")).outcomes(), ["b created", "a removed"]);
    assert_eq!(root.plan("").code, 10);
    root.put("/s/a", "drift");
    root.put("/s/a", "1\n");
    let after = root.tree();
    assert_eq!(before.len(), after.len());
    let same = |path: &str| before.get(path.as_ref() as &std::path::Path);
    assert_eq!(same("var/lib/mesh-host/journal.jsonl"), {
        after.get("var/lib/mesh-host/journal.jsonl".as_ref() as &std::path::Path)
    });
}

#[test]
fn a_plan_shows_old_against_new() {
    let root = Root::new("diff");
    root.put("/s/a", "one\ntwo\n");
    let declaration = support::root::declared(&file("a", "one\\nthree\\n"));
    let planned = root.declare("plan.json", &declaration);
    let run = root.host(&["plan", &planned]);
    for line in ["--- /s/a", "+++ /s/a", " one", "-two", "+three"] {
        assert!(run.out.lines().any(|said| said.trim_start_matches("    ") == line), "{}", run.out);
    }
    assert!(run.out.contains("plan: 1 to change\n"), "{}", run.out);
    assert_eq!(run.code, 0);
    assert_eq!(root.text("/s/a"), "one\ntwo\n");
}

#[test]
fn a_plan_says_what_cannot_be_known_yet() {
    let root = Root::new("unknown");
    root.put("/s/x", "was");
    let run = root.plan(r#"{"id":"f","type":"file","path":"/s/x/f","content":""}"#);
    assert_eq!((run.code, run.outcomes()), (1, vec!["f failed".to_string()]));
    fs::remove_file(root.at("/s/x")).unwrap();
    root.converge(&file("x", "1"));
    let under = r#"{"id":"d","type":"directory","path":"/s/x"},
        {"id":"f","type":"file","path":"/s/x/f","content":""}"#;
    let run = root.plan(under);
    assert_eq!(run.outcomes(), ["d created", "f created", "x removed"]);
    assert_eq!(run.detail("d"), "once what stands there is removed");
    assert_eq!(run.detail("f"), "unknown until path:/s/x is there");
}

/// The paths that the many declarations are about, a parent before what lies in it.
const PATHS: [&str; 8] = ["/s/a", "/s/a/b", "/s/a/b/c", "/s/a/d", "/s/e", "/s/e/f", "/s/g", "/s/h"];

/// What a path should be.
#[derive(Clone, Debug, PartialEq)]
enum Form {
    File(usize, Option<u32>),
    Directory(Option<u32>),
    Symlink(usize),
}

type Forms = BTreeMap<&'static str, Form>;

impl Form {
    fn resource(&self, path: &str) -> String {
        let mode = |mode: &Option<u32>| {
            mode.map_or(String::new(), |mode| format!(r#","mode":"{mode:04o}""#))
        };
        let (kind, rest) = match self {
            Form::File(text, access) => ("file", format!(r#","content":"{text}"{}"#, mode(access))),
            Form::Directory(access) => ("directory", mode(access)),
            Form::Symlink(target) => ("symlink", format!(r#","target":"to-{target}""#)),
        };
        let id = &path[3..];
        format!(r#"{{"id":"{id}","type":"{kind}","path":"{path}"{rest}}}"#)
    }

    /// Whether the machine has it so; of an undeclared mode, only where the host made it.
    fn is_at(&self, root: &Root, path: &str) -> bool {
        let is_mode = |mode: &Option<u32>| mode.is_none_or(|mode| root.mode(path) == mode);
        match self {
            Form::File(text, mode) => root.text(path) == text.to_string() && is_mode(mode),
            Form::Directory(mode) => {
                fs::symlink_metadata(root.at(path)).unwrap().is_dir() && is_mode(mode)
            }
            Form::Symlink(to) => {
                fs::read_link(root.at(path)).unwrap().to_str() == Some(&format!("to-{to}"))
            }
        }
    }
}

/// A declaration that can be applied on an empty root: what has something in it is a directory.
fn some(dice: &mut Dice) -> Forms {
    let mut forms = Forms::new();
    for path in PATHS {
        let parent = &path[..path.rfind('/').unwrap()];
        let has_parent = parent == "/s" || matches!(forms.get(parent), Some(Form::Directory(_)));
        let mode = [None, Some(0o700), Some(0o755), Some(0o640)][dice.below(4)];
        let form = match dice.below(6) {
            0 | 1 => continue,
            2 if has_parent => Form::File(dice.below(3), mode),
            3 if has_parent => Form::Symlink(dice.below(2)),
            // A directory makes its missing parents, unless one is declared as something else.
            _ if forms.iter().any(|(above, form)| {
                path.starts_with(&format!("{above}/")) && !matches!(form, Form::Directory(_))
            }) =>
            {
                continue
            }
            _ => Form::Directory(mode.map(|mode| mode | 0o100)),
        };
        forms.insert(path, form);
    }
    forms
}

/// Somebody else changes what is at a path.
fn meddle(root: &Root, path: &str, dice: &mut Dice) {
    let Ok(meta) = fs::symlink_metadata(root.at(path)) else { return };
    match (dice.below(4), meta.is_dir()) {
        (0, true) => fs::remove_dir_all(root.at(path)).unwrap(),
        (0, false) => fs::remove_file(root.at(path)).unwrap(),
        (1, false) if meta.is_file() => root.put(path, "meddled"),
        (2, _) if !meta.is_symlink() => root.chmod(path, 0o711),
        _ if meta.is_dir() => root.put(&format!("{path}/stray"), "somebody's"),
        _ => {}
    }
}

/// The declaration of `forms`, in an order of its own that `turn` chooses.
fn declare(forms: &Forms, turn: usize) -> String {
    let mut resources: Vec<String> = forms.iter().map(|(path, form)| form.resource(path)).collect();
    let middle = turn % resources.len().max(1);
    resources.rotate_left(middle);
    resources.join(",")
}

/// Applies `forms` to `root`, having planned it; whether it converged.
fn planned_and_applied(root: &Root, text: &str, forms: &Forms, what: &str) -> bool {
    let planned = root.plan(text);
    let applied = root.apply(text);
    let shown = format!("{what}: {text}\n{}\n{}{}", planned.out, applied.out, applied.err);
    assert_eq!(planned.outcomes(), applied.outcomes(), "{shown}");
    let idle = applied.outcomes().iter().all(|line| line.ends_with("unchanged"));
    let code = if applied.code != 0 {
        1
    } else if idle {
        0
    } else {
        10
    };
    assert_eq!(planned.code, code, "{shown}");
    if applied.code != 0 {
        return false;
    }
    for (path, form) in forms {
        assert!(form.is_at(root, path), "{path}: {form:?} {shown}");
    }
    let before = root.tree();
    let again = root.apply(text);
    assert!(again.outcomes().iter().all(|it| it.ends_with("unchanged")), "{shown}{}", again.out);
    assert_eq!(root.tree(), before, "{shown}");
    true
}

// R-2, R-3, R-5, R-9
#[test]
fn apply_does_what_was_planned_and_then_nothing_more() {
    let mut converged = 0;
    for seed in 1..=12 {
        let mut dice = Dice::new(seed * 7919);
        let root = Root::new(&format!("many-{seed}"));
        for round in 0..4 {
            let forms = some(&mut dice);
            // Mostly a parent before what lies in it.
            let turn = [0, 0, 0, dice.below(8)][dice.below(4)];
            let text = declare(&forms, turn);
            if planned_and_applied(&root, &text, &forms, &format!("seed {seed}, round {round}")) {
                converged += 1;
            }
            for _ in 0..dice.below(3) {
                let path = PATHS[dice.below(PATHS.len())];
                meddle(&root, path, &mut dice);
            }
            let what = format!("seed {seed}, round {round}, meddled");
            planned_and_applied(&root, &text, &forms, &what);
        }
        // What nobody else touched goes, the last that was made first.
        root.apply("").report();
        let owned = root.host(&["owned", "-q"]).out;
        assert_eq!(owned, "", "seed {seed}");
    }
    assert!(converged > 24, "{converged}");
}
