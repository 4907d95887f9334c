//! The packet filter: its tables as nft(8) tells of them, loaded and deleted by it.
//!
//! All tables that will be asked for are listed at once, and what was told is kept until something
//! changes. Only those tables are ever named to nft: what else the filter holds, a container
//! engine's rules above all, is neither read nor touched.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use super::child::{self, Call, Ended, How, Unrun};
use super::sys;
use super::words::{quoted, words};
use crate::resource::{Answer, Object, Trouble};
use crate::tool::nft::{self, Complaint, Ruleset, Table};

/// The longest answer, in bytes: some hundred for each of as many rules and elements as a
/// declaration can hold.
const LONGEST_ANSWER: usize = 128 << 20;

/// What is known of tables; `None` of one that is not there.
#[derive(Debug, Default)]
pub(super) struct Tables {
    expected: BTreeSet<Box<str>>,
    known: HashMap<Box<str>, Option<Table>>,
}

impl Tables {
    /// Notes that `table` will be asked for.
    pub fn expect(&mut self, table: &str) {
        self.expected.insert(table.into());
    }

    /// Forgets every answer.
    pub fn forget(&mut self) {
        self.known.clear();
    }

    /// What is known of `table`. Where that is ours to change and not as `declared`, the kernel
    /// must be ready to take what is.
    pub fn ask(
        &mut self,
        table: &str,
        declared: Option<&Ruleset>,
        limit: Duration,
    ) -> Result<Answer, Trouble> {
        if !self.known.contains_key(table) {
            self.look(table, limit).map_err(|cause| doing("look at", table, cause))?;
        }
        let found = self.known.get(table).cloned().flatten();
        let differs = |declared: &&Ruleset| match found.as_ref().map(|it| (it, &it.mark)) {
            None => true,
            Some((_, None)) => false,
            Some((table, Some(mark))) => !nft::differences(declared, mark, table).is_empty(),
        };
        if let Some(declared) = declared.filter(differs) {
            feed(&nft::CHECK, &declared.text(), limit)
                .map_err(|refused| refused.of(declared, "check"))?;
        }
        Ok(Answer::Table(found))
    }

    /// Lists everything that is expected, and `table`.
    fn look(&mut self, table: &str, limit: Duration) -> Result<(), String> {
        let others = self.expected.iter().map(|it| &**it).filter(|it| *it != table);
        let wanted: Vec<&str> = others.chain([table]).collect();
        let listed = list(&wanted, limit)?;
        self.known = wanted.into_iter().map(Box::from).zip(listed).collect();
        Ok(())
    }
}

/// Puts a table in place in one transaction, and notes in it what it was then listed as. One that
/// is there is made over, or, where something in it does not let nft do that, replaced.
pub(super) fn load(ruleset: &Ruleset, limit: Duration) -> Result<(), Trouble> {
    let table = ruleset.table();
    let found = list(&[table], limit).map_err(|cause| doing("look at", table, cause))?;
    let is_over = match found.iter().flatten().next() {
        Some(Table { mark: None, .. }) => {
            let cause = "one without the host's mark has come in its place".to_string();
            return Err(doing("load", table, cause));
        }
        Some(found) => feed(&nft::LOAD, &ruleset.text_over(found), limit).is_ok(),
        None => false,
    };
    if !is_over {
        feed(&nft::LOAD, &ruleset.text(), limit).map_err(|refused| refused.of(ruleset, "load"))?;
    }
    let noting = |cause| doing("note what was loaded as", table, cause);
    let listed = list(&[table], limit).map_err(noting)?;
    let is_loaded = |table: &&Table| {
        let mark = table.mark.as_ref();
        mark.is_some_and(|mark| mark.declared.as_deref() == Some(ruleset.digest()))
    };
    // What is not what was loaded is no more than looked at again.
    let Some(listed) = listed.iter().flatten().next().filter(is_loaded) else { return Ok(()) };
    feed(&nft::LOAD, &nft::seal(table, listed), limit).map_err(|refused| noting(refused.said))
}

/// Deletes a table, whole.
pub(super) fn delete(table: &str, limit: Duration) -> Result<(), Trouble> {
    feed(&nft::LOAD, &nft::delete(table), limit)
        .map_err(|refused| doing("delete", table, refused.said))
}

/// A table in nft's own words, from which it can be made again (1.0.6), but for what it counted.
pub(super) fn text_of(table: &str, limit: Duration) -> Option<String> {
    let command = nft::list(table);
    let argv = ["nft", "-s", &command];
    let ended = run(Call { cap: LONGEST_ANSWER, ..Call::new(&argv) }, limit).ok()?;
    text(&ended).ok().map(Cow::into_owned)
}

/// Puts a table back into the words that it was listed in.
pub(super) fn restore(table: &str, text: Option<&str>, limit: Duration) -> Result<(), Trouble> {
    feed(&nft::LOAD, &nft::restore(table, text.unwrap_or_default()), limit)
        .map_err(|refused| doing("put back", table, refused.said))
}

/// Why nft did not take what it was given.
struct Refused {
    complaint: Option<Complaint>,
    /// All of it in one line.
    said: String,
}

impl Refused {
    /// The trouble of doing `verb` to `declared`: the chain and the rule that it is about.
    fn of(self, declared: &Ruleset, verb: &str) -> Trouble {
        let complaint = self.complaint.as_ref();
        let place = complaint.and_then(|complaint| complaint.place.clone());
        let at = place.as_ref().and_then(|(line, _)| declared.at(*line));
        let cause = match at {
            Some(at) => format!("{at}: {}", self.said),
            None => self.said,
        };
        let missing = place.filter(|_| complaint.is_some_and(Complaint::is_of_interface));
        let interface = missing.and_then(|(line, bytes)| declared.words(line, bytes));
        let awaits = interface.map(|name| Object::new("overlay", name.trim_matches('"')));
        Trouble { awaits, ..doing(verb, declared.table(), cause) }
    }
}

/// Has nft read `input`.
fn feed(argv: &[&str], input: &str, limit: Duration) -> Result<(), Refused> {
    let plain = |said| Refused { complaint: None, said };
    let file = sys::in_memory(input.as_bytes());
    let file = file.map_err(|error| plain(format!("hand it to nft: {}", words(&error))))?;
    let ended = run(Call { input: Some(file), ..Call::new(argv) }, limit).map_err(plain)?;
    if ended.how == How::Exited(0) {
        return Ok(());
    }
    let complaint = nft::complaint(&String::from_utf8_lossy(ended.err.bytes()));
    let said = match (&complaint, ended.how) {
        (Some(it), How::Exited(code)) => {
            format!("nft exited {code}: {}", quoted(it.words.as_bytes()))
        }
        _ => format!("nft {}", ended.said()),
    };
    Err(Refused { complaint, said })
}

/// These tables; `None` for one that is not there.
fn list(tables: &[&str], limit: Duration) -> Result<Vec<Option<Table>>, String> {
    let read =
        |ended: &Ended| nft::tables(tables, &text(ended)?).map_err(|it| format!("nft: {it}"));
    let call = |argv: &[&str]| run(Call { cap: LONGEST_ANSWER, ..Call::new(argv) }, limit);
    if let [table] = tables {
        let command = nft::list(table);
        let ended = call(&["nft", "-j", &command])?;
        // Else it is not there, or so only the whole tells.
        if ended.how == How::Exited(0) {
            return read(&ended);
        }
    }
    read(&call(&nft::LIST)?)
}

fn run(call: Call, limit: Duration) -> Result<Ended, String> {
    child::run(call, limit).map_err(Unrun::into_cause)
}

/// All that nft wrote, where it did what it was told.
fn text(ended: &Ended) -> Result<Cow<'_, str>, String> {
    match ended.how {
        How::Exited(0) => ended.answer().map_err(|cause| format!("nft {cause}")),
        _ => Err(format!("nft {}", ended.said())),
    }
}

fn doing(verb: &str, table: &str, cause: String) -> Trouble {
    Trouble::new(format!("{verb} table {table}"), cause)
}
