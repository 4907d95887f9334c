//! What the types make of answers that a machine gives only now and then.

mod overlay;
mod peer;
mod service;
