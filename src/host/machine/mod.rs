//! The machine: the only place of the host that looks at it or changes it.
