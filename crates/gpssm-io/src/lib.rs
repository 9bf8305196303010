//! Files of gpssm.

pub mod store;
