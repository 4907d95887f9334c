//! Fields of a packet, read one after the other. Pure.

use super::Fault;

/// What is left of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'p>(pub &'p [u8]);

impl<'p> Fields<'p> {
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    pub fn bytes(&mut self, count: usize) -> Result<&'p [u8], Fault> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or(Fault::Short)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub fn one(&mut self) -> Result<u8, Fault> {
        Ok(self.bytes(1)?[0])
    }

    pub fn two(&mut self) -> Result<u16, Fault> {
        Ok(u16::from_be_bytes(self.bytes(2)?.try_into().expect("two bytes were asked for")))
    }

    pub fn four(&mut self) -> Result<u32, Fault> {
        Ok(u32::from_be_bytes(self.bytes(4)?.try_into().expect("four bytes were asked for")))
    }

    /// A variable byte integer (1.5.5), in as few bytes as it needs.
    pub fn variable(&mut self) -> Result<u32, Fault> {
        let mut value = 0;
        for at in 0..4 {
            let byte = self.one()?;
            value |= u32::from(byte & 0x7f) << (7 * at);
            if byte & 0x80 == 0 {
                let padded = at > 0 && byte == 0;
                return if padded { Err(Fault::Length) } else { Ok(value) };
            }
        }
        Err(Fault::Length)
    }

    pub fn binary(&mut self) -> Result<&'p [u8], Fault> {
        let count = self.two()?;
        self.bytes(count.into())
    }

    pub fn text(&mut self) -> Result<&'p str, Fault> {
        let text = std::str::from_utf8(self.binary()?).map_err(|_| Fault::Text)?;
        if text.contains('\0') {
            Err(Fault::Text)
        } else {
            Ok(text)
        }
    }

    /// A packet identifier, which is not 0 (2.2.1).
    pub fn id(&mut self) -> Result<u16, Fault> {
        match self.two()? {
            0 => Err(Fault::Value("packet identifier")),
            id => Ok(id),
        }
    }
}
