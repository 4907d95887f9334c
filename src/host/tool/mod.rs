//! What each tool is asked and what it answers: argument vectors and parsers. Pure.

pub mod authorized_keys;
pub mod nft;
pub mod shadow;
pub mod systemctl;
