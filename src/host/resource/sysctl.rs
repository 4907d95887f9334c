//! `sysctl`: a kernel parameter's value.

/// A declared kernel parameter.
#[derive(Debug)]
pub struct Sysctl {
    /// Dotted key; a `/` stands for a dot inside a name, as sysctl(8) has it.
    pub key: Box<str>,
    /// The value as written to the kernel.
    pub value: Box<str>,
}
