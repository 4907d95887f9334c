//! The store: what this host has accepted, intends, has applied and owns.
