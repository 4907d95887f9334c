//! `directory`: a directory, with its missing parents.

use super::access::{claim_path, take_access, GROUP, OWNER};
use super::kind::{Carrier, Field, Kind, Shape, Touch, TIMEOUT_S};
use super::{Access, RootPath};

/// A declared directory.
#[derive(Debug)]
pub struct Directory {
    /// Where.
    pub path: RootPath,
    /// Permissions and ownership.
    pub access: Access,
}

/// How a declaration names a directory.
pub static KIND: Kind = Kind {
    name: "directory",
    doc: "A directory. Missing parents are made with it (0755, root) and go with it. On leaving \
          the declaration it is removed if the host created it and it is empty.",
    fields: &[
        Field::required("path", "Where it is.", Shape::Path),
        Field::optional(
            "mode",
            "Permission bits. Absent: 0755 where the host creates it, unmanaged where it was.",
            Shape::Mode,
        ),
        OWNER,
        GROUP,
    ],
    exactly_one: &[],
    default_timeout_s: TIMEOUT_S,
    carrier: Carrier::Any,
    rules: |fields, judge| {
        claim_path(fields, judge);
        if let Some(path) = fields.path("path") {
            let managed = ["mode", "owner", "group"].iter().any(|name| fields.has(name));
            let touch = if managed { Touch::Access } else { Touch::Directory };
            judge.touches("path", touch(path));
        }
    },
    build: Some(|_, fields| {
        let (path, access) = (fields.take_path("path"), take_access(fields));
        Box::new(Directory { path, access })
    }),
};
