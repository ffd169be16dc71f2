#![doc = include_str!("README.md")]

#[cfg(test)]
mod tests;

pub mod text;

pub mod domain;

pub mod rpc;

pub mod protocol;

pub mod config;

pub mod model;

pub mod workspace;

pub mod changes;

pub mod process;

pub mod calls;

pub mod tools;

pub mod agent;

pub mod session;

pub mod completion;

pub mod server;

pub mod cli;
