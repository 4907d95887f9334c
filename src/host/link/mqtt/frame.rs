//! One packet as it arrives, in pieces. Pure.

use super::Fault;

/// The bytes of the packet that is arriving. It says how many more it wants, so that it never holds
/// any of the next, and grows only with what has come.
#[derive(Debug, Default)]
pub struct Frame(Vec<u8>);

impl Frame {
    /// How many bytes are certainly still to come; 0 once the packet is whole.
    ///
    /// # Errors
    /// It is none, or would have more than `most` bytes.
    pub fn missing(&self, most: usize) -> Result<usize, Fault> {
        let Some(lengths) = self.0.get(1..) else { return Ok(2) };
        let mut size = 0;
        for (at, byte) in lengths.iter().take(4).enumerate() {
            size |= usize::from(byte & 0x7f) << (7 * at);
            if byte & 0x80 == 0 {
                let size = 2 + at + size;
                return match size <= most {
                    true => Ok(size - self.0.len()),
                    false => Err(Fault::Large { size, most }),
                };
            }
        }
        if lengths.len() < 4 {
            Ok(1)
        } else {
            Err(Fault::Length)
        }
    }

    /// Adds bytes, no more than were missing.
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// The whole packet; from here on, the next one arrives.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }
}
