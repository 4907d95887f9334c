//! What is the host's own, and may not be declared. Pure.

/// The host's own places, as paths inside the root.
#[derive(Clone, Debug, Default)]
pub struct Own {
    /// The state directory in use, where it lies inside the root and is not the default one.
    pub state: Option<crate::resource::RootPath>,
    /// The running binary, where it lies inside the root.
    pub binary: Option<crate::resource::RootPath>,
    /// The configuration file in use, where it lies inside the root and is not the default one.
    pub config: Option<crate::resource::RootPath>,
}
