//! What the types that live at a path share: the fields of ownership, and the rules of the path.
//! Pure.

use super::fields::{Fields, Value};
use super::kind::{Field, Judge, Shape};
use super::{Access, Principal, RootPath};
use crate::declaration::fault::quoted;

/// The owning user.
pub const OWNER: Field = Field::optional(
    "owner",
    "The owning user, by name or number. Absent: root where the host creates it, unmanaged where \
     it was.",
    Shape::Principal,
);

/// The owning group.
pub const GROUP: Field = Field::optional(
    "group",
    "The owning group, by name or number. Absent: root where the host creates it, unmanaged where \
     it was.",
    Shape::Principal,
);

/// Claims the object at `path`, and refuses the file systems in which nothing can be put and the
/// names that the host itself uses on the way.
pub fn claim_path<'a>(fields: &Fields<'a>, judge: &mut dyn Judge<'a>) {
    let Some(path) = fields.path_text("path") else { return };
    let within = |dir: &str| {
        path.strip_prefix(dir).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if within("/proc") || within("/sys") {
        let wrong = format!("{} lies in the kernel's own file system", quoted(&path));
        judge.wrong("path", wrong, "declare a kernel value as a sysctl");
    }
    if fields.path("path").is_some_and(RootPath::is_temporary) {
        let wrong = format!("{} has a name that the host gives to unfinished files", quoted(&path));
        judge.wrong("path", wrong, "choose another name");
    }
    judge.claims("path", "path", path);
}

/// Takes `mode`, `owner` and `group`, as far as the table has them.
pub fn take_access(fields: &mut Fields<'_>) -> Access {
    let mode = match fields.take("mode") {
        Some(Value::Mode(mode)) => Some(mode),
        _ => None,
    };
    let (owner, group) = (take_principal(fields, "owner"), take_principal(fields, "group"));
    Access { mode, owner, group }
}

/// Takes the user or group in the field `name`.
pub fn take_principal(fields: &mut Fields<'_>, name: &str) -> Option<Principal> {
    match fields.take(name) {
        Some(Value::Principal(principal)) => Some(principal),
        _ => None,
    }
}
