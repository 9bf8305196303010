//! Reports of gpssm.
