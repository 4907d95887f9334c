//! Who keeps undoing us: what has to be put right again and again. Pure; the clock is passed in.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::store::Source;

/// As often in a row as this, and it is contested.
const TIMES: u32 = 3;

/// How many are kept in mind.
const MOST: usize = 1000;

/// A resource, by its source and id.
pub type Key = (Source, String);

/// What has been put right lately.
#[derive(Debug, Default)]
pub struct Contest {
    corrected: BTreeMap<Key, Row>,
}

#[derive(Debug)]
struct Row {
    times: u32,
    first: u64,
    last: Duration,
}

/// A contested resource.
#[derive(Debug, PartialEq, Eq)]
pub struct Contested<'c> {
    /// Which.
    pub key: &'c Key,
    /// How often it was put right.
    pub times: u32,
    /// Since when, in seconds since 1970.
    pub since: u64,
}

impl Contest {
    /// These were put right by a pass at `now`, which is `wall` for people; what of them is
    /// contested that was not before. A row ends where nothing comes for `span`.
    pub fn note(
        &mut self,
        corrected: impl Iterator<Item = Key>,
        span: Duration,
        now: Duration,
        wall: u64,
    ) -> Vec<Key> {
        self.corrected.retain(|_, row| row.last + span >= now);
        let mut new = Vec::new();
        for key in corrected {
            if self.corrected.len() == MOST && !self.corrected.contains_key(&key) {
                continue;
            }
            let fresh = Row { times: 0, first: wall, last: now };
            let row = self.corrected.entry(key.clone()).or_insert(fresh);
            (row.times, row.last) = (row.times.saturating_add(1), now);
            if row.times == TIMES {
                new.push(key);
            }
        }
        new
    }

    /// What is contested.
    pub fn contested(&self) -> impl Iterator<Item = Contested<'_>> {
        let rows = self.corrected.iter().filter(|(_, row)| row.times >= TIMES);
        rows.map(|(key, row)| Contested { key, times: row.times, since: row.first })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_right_three_times_in_a_row_is_contested_until_it_is_let_be() {
        let mut contest = Contest::default();
        let key = |id: &str| (Source::Local, id.to_string());
        let span = Duration::from_secs(100);
        let at = Duration::from_secs;
        assert!(contest.note([key("a")].into_iter(), span, at(0), 5).is_empty());
        assert!(contest.note([key("a"), key("b")].into_iter(), span, at(50), 55).is_empty());
        assert_eq!(contest.contested().count(), 0);
        assert_eq!(contest.note([key("a")].into_iter(), span, at(100), 105), [key("a")]);
        assert!(contest.note([key("a")].into_iter(), span, at(101), 106).is_empty(), "said once");
        let all: Vec<_> = contest.contested().collect();
        assert_eq!(all, [Contested { key: &key("a"), times: 4, since: 5 }]);
        contest.note([].into_iter(), span, at(202), 207);
        assert_eq!(contest.contested().count(), 0);
        for nth in 0..2 * MOST {
            contest.note([key(&nth.to_string())].into_iter(), span, at(203), 208);
        }
        assert_eq!(contest.corrected.len(), MOST);
    }
}
