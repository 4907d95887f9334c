//! How a unit was before the host had a say in it, and how it is left so again. Pure.

use super::parting::{Ends, Farewell, Leaving, Undo};
use super::{Answer, Question, Step, Trouble};
use crate::tool::systemctl::{Active, FileState, Verb};

/// How each part was before the host had a say in it; `None` where it has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Before {
    pub ran: Option<bool>,
    pub enabled: Option<bool>,
}

impl Before {
    pub fn read(text: &str) -> Before {
        let either = |on: &str, off: &str| {
            text.split(' ').find_map(|word| match word {
                word if word == on => Some(true),
                word if word == off => Some(false),
                _ => None,
            })
        };
        Before { ran: either("running", "stopped"), enabled: either("enabled", "disabled") }
    }

    pub fn write(self) -> String {
        let ran = self.ran.map(|ran| if ran { "running" } else { "stopped" });
        let enabled = self.enabled.map(|enabled| if enabled { "enabled" } else { "disabled" });
        let words: Vec<&str> = ran.into_iter().chain(enabled).collect();
        words.join(" ")
    }
}

/// A unit that leaves is stopped if the host started it, and disabled if the host enabled it.
pub(super) struct AsBefore;

impl Undo for AsBefore {
    fn announces(&self, it: &Leaving<'_>) -> Option<String> {
        let before = Before::read(it.before.unwrap_or_default());
        let does = match (before.ran, before.enabled) {
            (Some(false), Some(false)) => "stop and disable",
            (Some(false), _) => "stop",
            (_, Some(false)) => "disable",
            _ => return None,
        };
        Some(format!("{does} {}", it.name))
    }

    fn question<'a>(&self, it: &Leaving<'a>) -> Question<'a> {
        let before = Before::read(it.before.unwrap_or_default());
        Question::Unit { unit: it.name, enabling: before.enabled == Some(false) }
    }

    fn judge<'a>(&self, it: &Leaving<'a>, answer: &Answer) -> Result<Farewell<'a>, Trouble> {
        let before = Before::read(it.before.unwrap_or_default());
        if before.ran != Some(false) && before.enabled != Some(false) {
            return Ok(Farewell::ended(Ends::Forgotten, ""));
        }
        let (active, file) = match answer {
            Answer::Unit(unit) if *unit.id != *it.name => {
                return Ok(Farewell::ended(
                    Ends::Left,
                    &format!("it is an alias of {} now", unit.id),
                ));
            }
            Answer::Unit(unit) => (unit.active, unit.file),
            Answer::UnitFile(file) => (Active::Down, *file),
            Answer::NotApplicable(why) => return Ok(Farewell::ended(Ends::Left, why)),
            other => return Err(other.mismatch()),
        };
        let stop = (before.ran == Some(false) && runs(active)).then_some(Verb::Stop);
        let disable = (before.enabled == Some(false) && file.is_enabled()).then_some(Verb::Disable);
        let verbs = stop.into_iter().chain(disable);
        let steps = verbs.map(|verb| Step::Unit { unit: it.name, verb }).collect();
        let detail = match (before.ran, before.enabled) {
            _ if file == FileState::Missing && active == Active::Down => "was gone already",
            (Some(false), Some(false)) => "stopped and disabled",
            (Some(false), _) => "stopped",
            _ => "disabled",
        };
        Ok(Farewell { steps, ..Farewell::ended(Ends::Removed, detail) })
    }
}

/// It runs, or is about to.
pub(super) fn runs(active: Active) -> bool {
    !matches!(active, Active::Down | Active::Failed)
}
