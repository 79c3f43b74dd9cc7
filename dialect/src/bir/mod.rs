//! The BIR dialect proper: instruction table, types, access patterns, targets, verifier.

pub mod access;
pub mod attrs;
pub mod files;
pub mod indices;
pub mod loops;
pub mod num;
pub mod ops;
pub mod program;
pub mod space;
pub mod types;
pub mod verify;
pub mod view;
