//! What is left of a resource whose secret value the store has lost: its turn fails, and everything
//! else is held. Pure.

use super::{Answer, Follows, Object, Past, Question, Resource, Trouble, Verdict};

/// A resource without its secret.
#[derive(Debug)]
pub struct Lost {
    /// What it would be, with no value in its place.
    pub without: Box<dyn Resource>,
    /// The name under which the value was kept.
    pub name: Box<str>,
}

impl Resource for Lost {
    fn kind(&self) -> &'static str {
        self.without.kind()
    }

    fn object(&self) -> Object {
        self.without.object()
    }

    fn complete(&mut self, object: &Object) {
        self.without.complete(object);
    }

    fn question(&self) -> Question<'_> {
        self.without.question()
    }

    fn judge(&self, _answer: &Answer, _past: &Past<'_>) -> Result<Verdict<'_>, Trouble> {
        let doing = format!("take the secret value of {} from the store", self.object().name());
        let name = self.name.get(..8).unwrap_or(&self.name);
        let cause = format!("{name}… is not there, or not as it was; apply its declaration again");
        Err(Trouble::new(doing, cause))
    }

    fn follows(&self) -> Follows {
        self.without.follows()
    }

    fn is_marked(&self) -> bool {
        self.without.is_marked()
    }

    fn secret(&self) -> bool {
        true
    }
}
