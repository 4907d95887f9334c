//! The node host: makes one machine match a declaration and records what it made.
//!
//! Data flows one way: source → parse → observe → plan → take steps → read back → record →
//! report. `declaration`, `resource`, `tool`, `plan`, `diff`, `digest` and `base64` are pure: they
//! return data and name no effect. `machine` is the only place that touches the machine, `store`
//! the only one that touches the host's own state. `link` holds the connection to the mesh, and is
//! pure but for the file that carries out what its session says, TLS, and what keeps the identity.
//! `reconcile` is the flow itself; the command line calls it, and the `service` has it called by
//! children that make one pass each.
//!
//! Absent on purpose: no thread, no async, no shell string, no listener, no query of anything but
//! this machine. A resource never acts: it asks, judges and yields steps.

pub mod accept;
pub mod base64;
pub mod cli;
pub mod config;
pub mod declaration;
pub mod diff;
pub mod digest;
pub mod error;
pub mod hash;
pub mod link;
pub mod machine;
pub mod plain;
pub mod plan;
pub mod reconcile;
pub mod report;
pub mod resource;
pub mod service;
pub mod spool;
pub mod store;
pub mod tool;
pub mod when;
