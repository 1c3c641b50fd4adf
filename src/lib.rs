//! dynamorph.
#![allow(dead_code)]

pub mod codec;
pub mod document;
pub mod error;
pub mod expr;
pub mod limits;
pub mod model;
pub mod ops;
pub mod plan;
pub mod proof;
pub mod shape;
pub mod sink;
pub mod source;
pub mod store;
