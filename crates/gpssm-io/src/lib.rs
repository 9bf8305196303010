//! Files of gpssm.
