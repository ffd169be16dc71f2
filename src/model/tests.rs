//! What one API alone cannot show: recorded streams, requests and faults in all three dialects.

mod corpus;
mod encoding;
mod faults;
