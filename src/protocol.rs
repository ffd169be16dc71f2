//! Wire types and nothing else: the Agent Client Protocol and the Language Server Protocol from their official crates,
//! and tandem's additions under its own prefix.

pub mod acp {
    //! The Agent Client Protocol, version 1.
    pub use agent_client_protocol_schema::ProtocolVersion;
    pub use agent_client_protocol_schema::v1::*;
}
pub mod ext;
pub mod lsp;
