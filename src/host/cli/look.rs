//! The commands that only look at the store: what it holds, what it recorded, how things stand.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::commands::Place;
use super::show::{counted, plain};
use super::{print, print_json, Invocation};
use crate::accept;
use crate::digest::hex;
use crate::error::Error;
use crate::machine;
use crate::resource::{overlay, Standing};
use crate::service;
use crate::store::{self, Entry, Kind, Lock, Made, Name, Reading, Record, Source, State, Tail};
use crate::when::When;

/// How many records `journal` shows where nobody says.
const LAST: u64 = 20;

/// The largest status of the service that is read, in bytes.
const LARGEST_STATUS: u64 = 4 << 20;

/// How often a followed journal is looked at.
const EVERY: Duration = Duration::from_millis(500);

/// `owned`: what the host owns, in order of making.
pub(super) fn owned(it: &Invocation, state: &Path) -> Result<u8, Error> {
    #[derive(Serialize)]
    struct Holding<'s> {
        object: &'s str,
        #[serde(rename = "type")]
        kind: &'s str,
        id: &'s str,
        source: Source,
        since: String,
        made: &'static str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        implied: bool,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        pending: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        public_key: Option<&'s str>,
    }
    #[derive(Serialize)]
    struct Shape<'s> {
        schema: &'static str,
        owned: Vec<Holding<'s>>,
    }
    let reading = Reading::of(state)?;
    let holding = |owned: store::Owned<'_>| {
        let made = if owned.standing == Standing::Created { "created" } else { "adopted" };
        let since = When(owned.since).to_string();
        (made, since, owned.pending.is_some())
    };
    if it.json {
        let owned = reading.state.owned().map(|owned| {
            let (made, since, pending) = holding(owned);
            let store::Owned { object, of_type: kind, id, source, implied, .. } = owned;
            let public_key = public_key(&owned);
            Holding { object, kind, id, source, since, made, implied, pending, public_key }
        });
        return print_json(&Shape { schema: "owned/1", owned: owned.collect() }).map(|()| 0);
    }
    let mut out = String::new();
    for owned in reading.state.owned() {
        let (made, since, pending) = holding(owned);
        let name = owned.object.split_once(':').map_or(owned.object, |(_, name)| name);
        let more = match (owned.implied, pending, public_key(&owned)) {
            (true, ..) => " (made along with it)".into(),
            (_, true, _) => " (not yet seen to be done)".into(),
            (.., Some(key)) => format!(": public key {key}"),
            _ => String::new(),
        };
        let (kind, name, id) = (owned.of_type, plain(name), plain(owned.id));
        let source = owned.source.as_str();
        out += &format!("{made} {since} {source:<6} {kind:<9} {name}  [{id}]{more}\n");
    }
    if out.is_empty() && !it.quiet {
        super::show::note("this host owns nothing");
    }
    print(&out).map(|()| 0)
}

/// The public key of what has one: what others need to know of it, in order to be its peers.
fn public_key<'s>(owned: &store::Owned<'s>) -> Option<&'s str> {
    overlay::public_key(owned.before.filter(|_| owned.of_type == overlay::KIND.name)?)
}

/// `journal`: the last records, each as it is written, or a check of all.
pub(super) fn journal(it: &Invocation, state: &Path) -> Result<u8, Error> {
    if it.verify {
        return verify(it, state);
    }
    let mut tail = Tail::of(state, it.count.unwrap_or(LAST))?;
    let mut lines = Vec::new();
    tail.read(&mut |entry| {
        lines.push(shown(it, entry));
        Ok(())
    })?;
    if it.json && !it.follow {
        let shape = format!("{{\"schema\":\"journal/1\",\"records\":[{}]}}\n", lines.join(","));
        return print(&shape).map(|()| 0);
    }
    for line in lines {
        print(&format!("{line}\n"))?;
    }
    if !it.follow {
        return Ok(0);
    }
    while !super::reader_left() {
        machine::pause(EVERY);
        tail.read(&mut |entry| print(&format!("{}\n", shown(it, entry))))?;
    }
    Ok(0)
}

fn verify(it: &Invocation, state: &Path) -> Result<u8, Error> {
    #[derive(Serialize)]
    struct Shape {
        schema: &'static str,
        lines: u64,
        last_seq: u64,
        torn_bytes: Option<u64>,
    }
    let summary = store::verify(state)?;
    let torn = summary.torn.as_ref();
    if it.json {
        return print_json(&Shape {
            schema: "verify/1",
            lines: summary.lines,
            last_seq: summary.last_seq,
            torn_bytes: torn.map(|torn| torn.bytes),
        })
        .map(|()| 0);
    }
    let torn = torn.map_or(String::new(), |torn| {
        format!(", and {} bytes of a last line that was not written whole", torn.bytes)
    });
    let (lines, seq) = (summary.lines, summary.last_seq);
    let lines = counted(lines as usize, "line");
    print(&format!("{lines}, every one intact; last record {seq}{torn}\n")).map(|()| 0)
}

/// A record as a line: of JSON, or for a person.
fn shown(it: &Invocation, entry: &Entry<'_>) -> String {
    let record = &entry.record;
    if it.json {
        return serde_json::to_string(record).expect("a record is plain JSON");
    }
    let kind = record.kind.as_str();
    let words = words(record).join(" ");
    let line = format!("{:>6} {} {kind:<9} {}", record.seq, record.at, plain(&words));
    line.trim_end().to_owned()
}

/// What a record says besides its number, time and kind.
fn words(record: &Record<'_>) -> Vec<String> {
    let mut words = Vec::new();
    words.extend(record.outcome.map(|outcome| outcome.as_str().replace('_', " ")));
    words.extend(record.of_type.as_ref().map(|it| it.to_string()));
    let name = |object: &str| object.split_once(':').map_or(object, |(_, it)| it).to_owned();
    // A failure says itself what it was about.
    words.extend(record.object.as_ref().filter(|_| record.doing.is_none()).map(|it| name(it)));
    words.extend(record.sha256.map(|sha256| format!("{}…", &hex(&sha256.0)[..12])));
    words.extend(record.serial.map(|serial| format!("serial {serial}")));
    words.extend(record.reason.as_ref().map(|it| it.to_string()));
    words.extend(record.until.map(|until| format!("until {until}")));
    let together = Some(record.objects.len()).filter(|&count| count > 0);
    words.extend(together.map(|count| format!("{} as before", counted(count, "object"))));
    words.extend(record.records.map(|records| format!("of {records} records")));
    if let Some(counts) = record.counts {
        let counts = [
            (counts.changed, "changed"),
            (counts.corrected, "corrected"),
            (counts.removed, "removed"),
            (counts.failed, "failed"),
        ];
        let told = counts.into_iter().filter(|(count, _)| *count > 0);
        let told: Vec<String> = told.map(|(count, word)| format!("{count} {word}")).collect();
        words.extend(Some(told.join(", ")).filter(|told| !told.is_empty()));
    }
    if let (Some(doing), Some(cause)) = (&record.doing, &record.cause) {
        words.push(format!("{}: {}", &**doing, &**cause));
    }
    if record.kind == Kind::Failed && record.made == Some(Made::Nothing) {
        words.push("nothing came of it".into());
    }
    if let Some(from) = record.from {
        let to = record.to.map_or(String::new(), |to| format!(" to {to}"));
        words.push(format!("from {from}{to}"));
    }
    words.extend(record.source.map(|source| format!("({source})")));
    if record.kind == Kind::Pass {
        words.extend(record.trigger.as_ref().map(|trigger| format!("({})", &**trigger)));
    } else {
        words.extend(record.id.as_ref().map(|id| format!("[{}]", &**id)));
    }
    words
}

/// `status`: is this machine what it was told to be, and if not why?
pub(super) fn status(it: &Invocation, place: &Place) -> Result<u8, Error> {
    let service = service(place);
    let reading = Reading::of(&place.state).inspect_err(|_| {
        // Where the store is damaged, what the service says is all there is to know.
        if let Some(service) = service.as_ref().filter(|_| !it.quiet) {
            super::show::note(&words_of(service).join("; "));
        }
    })?;
    let status = Status { service, ..Status::of(&reading.state) };
    if it.json {
        return print_json(&status).map(|()| 0);
    }
    let mut out = format!("{}\n", status.verdict());
    for declared in &status.declared {
        let serial = declared.serial.map_or(String::new(), |serial| format!(" serial {serial}"));
        let whole = if declared.whole { "applied whole" } else { "not yet applied whole" };
        let (source, accepted) = (declared.source, &declared.accepted);
        out += &format!("{source:<6}{serial} accepted {accepted}, {whole}\n");
    }
    out += &format!("owns {}\n", counted(status.owned, "object"));
    if let Some(pass) = &status.last_pass {
        let outcome = pass.outcome.unwrap_or("unknown");
        out += &format!("last pass with news: {} {outcome} ({})\n", pass.finished, pass.trigger);
    }
    if let Some(paused) = &status.paused {
        let until = paused.until.as_deref().unwrap_or("resume");
        let (since, reason) = (&paused.since, plain(&paused.reason));
        out += &format!("paused since {since} until {until}: {reason}\n");
    }
    for failing in &status.failing {
        let Failing { id, source, since, doing, cause, .. } = failing;
        let said = format!("failing since {since}: {id} ({source}): {doing}: {cause}");
        out += &format!("{}\n", plain(&said));
    }
    match &status.service {
        Some(service) => out += &(words_of(service).join("\n") + "\n"),
        None => out += "service: not running\n",
    }
    print(&out).map(|()| 0)
}

/// What the running service says of itself; nothing where none runs.
fn service(place: &Place) -> Option<Value> {
    let pid = Lock::holder(&place.state, Name::Run).ok()??;
    let file = std::fs::File::open(service::status::place(&place.root)).ok()?;
    let mut text = Vec::new();
    file.take(LARGEST_STATUS).read_to_end(&mut text).ok()?;
    let said: Value = serde_json::from_slice(&text).ok()?;
    (said["pid"] == pid).then_some(said)
}

/// The same in lines.
fn words_of(service: &Value) -> Vec<String> {
    let text = |value: &Value| plain(value.as_str().unwrap_or("?")).into_owned();
    let (doing, since) = (text(&service["doing"]), text(&service["since"]));
    let mut lines = vec![format!("service: {doing}, process {}, since {since}", service["pid"])];
    if let Some(why) = service["unable"].as_str() {
        lines.push(format!("service: no pass was made: {}", plain(why)));
    }
    if let Some(pass) = service.get("last_pass") {
        let (finished, outcome) = (text(&pass["finished"]), text(&pass["outcome"]));
        lines.push(format!("last pass: {finished} {outcome} ({})", text(&pass["trigger"])));
    }
    if let Some(next) = service["next_pass"].as_str() {
        lines.push(format!("next pass: {}", plain(next)));
    }
    let drift = &service["drift"];
    let why = drift["why"].as_str().map_or(String::new(), |why| format!(": {}", plain(why)));
    let (watched, unwatched) = (&drift["watched"], &drift["unwatched"]);
    if unwatched != 0 || !why.is_empty() {
        lines.push(format!(
            "drift of {watched} paths is seen at once, of {unwatched} by the timer only{why}"
        ));
    }
    for it in service["contested"].as_array().into_iter().flatten() {
        let (id, source, since) = (text(&it["id"]), text(&it["source"]), text(&it["since"]));
        let times = &it["times"];
        lines.push(format!("contested since {since}: {id} ({source}) was put right {times} times"));
    }
    lines
}

#[derive(Serialize)]
struct Status {
    schema: &'static str,
    /// Everything declared was applied whole, and nothing has failed since.
    as_declared: bool,
    declared: Vec<Declared>,
    owned: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_pass: Option<LastPass>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paused: Option<Paused>,
    failing: Vec<Failing>,
    /// As `run/mesh-host/status.json` has it, while the service runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<Value>,
}

#[derive(Serialize)]
struct Declared {
    source: Source,
    #[serde(skip_serializing_if = "Option::is_none")]
    serial: Option<u64>,
    sha256: String,
    accepted: String,
    whole: bool,
}

#[derive(Serialize)]
struct LastPass {
    id: String,
    finished: String,
    trigger: String,
    outcome: Option<&'static str>,
}

#[derive(Serialize)]
struct Paused {
    reason: String,
    since: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
}

#[derive(Serialize)]
struct Failing {
    id: String,
    source: Source,
    since: String,
    stage: Option<crate::error::Stage>,
    doing: String,
    cause: String,
}

impl Status {
    /// The answer to the question that a person comes with.
    fn verdict(&self) -> String {
        match (self.failing.len(), &self.paused) {
            (0, None) if self.declared.is_empty() => {
                "nothing has been declared to this host yet".into()
            }
            (0, None) if self.as_declared => "as declared, when a pass last looked".into(),
            (0, None) => "not as declared: a declaration waits to be applied whole".into(),
            (0, Some(_)) if self.as_declared => "held still, as declared".into(),
            (0, Some(_)) => "held still, and not as declared".into(),
            (count, _) => format!("not as declared: {} failing", counted(count, "resource")),
        }
    }

    fn of(state: &State) -> Status {
        let declared = |source| {
            let accepted = state.accepted(source)?;
            Some(Declared {
                source,
                serial: accepted.serial,
                sha256: crate::digest::hex(&accepted.sha256),
                accepted: When(accepted.at).to_string(),
                whole: state.is_whole(source),
            })
        };
        let pass = |pass: &store::LastPass| LastPass {
            id: pass.id.to_string(),
            finished: When(pass.at).to_string(),
            trigger: pass.trigger.to_string(),
            outcome: pass.outcome.map(|outcome| outcome.as_str()),
        };
        let paused = |paused: &store::Paused| Paused {
            reason: paused.reason.to_string(),
            since: When(paused.since).to_string(),
            until: paused.until.map(|until| When(until).to_string()),
        };
        let failing = |(source, id, why): (Source, &str, &store::Failing)| Failing {
            id: id.into(),
            source,
            since: When(why.since).to_string(),
            stage: why.stage,
            doing: why.doing.to_string(),
            cause: why.cause.to_string(),
        };
        let whole = |source| state.accepted(source).is_none() || state.is_whole(source);
        Status {
            schema: "status/1",
            as_declared: Source::ALL.into_iter().all(whole) && state.failing().next().is_none(),
            declared: Source::ALL.into_iter().filter_map(declared).collect(),
            owned: state.owned_len(),
            last_pass: state.last_pass().map(pass),
            paused: accept::paused(state, machine::now()).map(paused),
            failing: state.failing().map(failing).collect(),
            service: None,
        }
    }
}
