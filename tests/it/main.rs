//! Integration tests: the real program, real servers, real readers.

mod batch_write;
mod broken;
mod cli;
mod copies;
mod exports;
mod fixtures;
mod folders;
mod import_files;
mod incremental;
mod interop;
mod layers;
mod live;
mod mixed;
mod order;
mod pipelines;
mod program;
mod python;
mod rejects;
mod resume;
mod s3;
mod s3_exports;
mod s3_sinks;
mod samples;
mod seeds;
mod shapes;
mod support;
