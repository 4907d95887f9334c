//! What each tool is asked and what it answers: argument vectors and parsers. Pure.

pub mod apt;
pub mod manager;
pub mod pacman;
pub mod shadow;
