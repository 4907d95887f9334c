//! How the machine's words and untrusted text stand in a message. No effect.

use std::io;

/// The longest piece of untrusted text in a message, in bytes.
const LONGEST: usize = 300;

/// The kernel's words, without the number that `std` adds.
pub(crate) fn words(error: &io::Error) -> String {
    let mut text = error.to_string();
    if error.raw_os_error().is_some() {
        text.truncate(text.rfind(" (os error").unwrap_or(text.len()));
    }
    let second_is_lower = text.as_bytes().get(1).is_some_and(|c| !c.is_ascii_uppercase());
    if second_is_lower && text.is_char_boundary(1) {
        text[..1].make_ascii_lowercase();
    }
    text
}

/// `bytes` quoted for a message; of long ones the beginning.
pub(super) fn quoted(bytes: &[u8]) -> String {
    match bytes.get(..LONGEST) {
        Some(start) if bytes.len() > LONGEST => {
            format!("{:?}…", String::from_utf8_lossy(start))
        }
        _ => format!("{:?}", String::from_utf8_lossy(bytes)),
    }
}

/// The last line with something on it, quoted; of long ones the end. `None` where there is none.
pub(super) fn last_line(bytes: &[u8]) -> Option<String> {
    let line =
        bytes.rsplit(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).find(|l| !l.is_empty())?;
    match line.len().checked_sub(LONGEST) {
        Some(surplus @ 1..) => Some(format!("…{:?}", String::from_utf8_lossy(&line[surplus..]))),
        _ => Some(format!("{:?}", String::from_utf8_lossy(line))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_reads_as_the_kernel_says_it() {
        assert_eq!(words(&io::Error::from_raw_os_error(libc::ENOENT)), "no such file or directory");
        assert_eq!(words(&io::Error::other("URL is empty")), "URL is empty");
        assert_eq!(words(&io::Error::other("")), "");
        assert_eq!(words(&io::Error::other("é")), "é");
    }

    #[test]
    fn hostile_text_is_escaped_and_capped() {
        assert_eq!(quoted(b"a\x1b[2J\xff"), "\"a\\u{1b}[2J\u{fffd}\"");
        assert!(quoted(&[b'x'; 100_000]).len() < LONGEST + 10);
        assert_eq!(last_line(b"one\ntwo \n\n").as_deref(), Some("\"two\""));
        assert_eq!(last_line(b" \n\t\n"), None);
        assert!(last_line(&[0xff; 100_000]).is_some_and(|line| line.len() < 4 * LONGEST));
    }
}
