//! One file for each command.

pub mod check;
pub mod compare;
pub mod demo;
pub mod distil;
pub mod dry_run;
pub mod evaluate;
pub mod export;
pub mod filter;
pub mod fit;
pub mod forecast;
pub mod init;
pub mod linearize;
pub mod merge;
pub mod predict;
pub mod report;
pub mod reproduce;
pub mod sbc;
pub mod score;
pub mod shell;
pub mod simulate;
pub mod summary;
