//! What each tool is asked and what it answers: argument vectors and parsers. Pure.

pub mod apt;
pub mod authorized_keys;
pub mod docker;
pub mod installer;
pub mod ip;
pub mod pacman;
pub mod shadow;
pub mod systemctl;
pub mod wg;
