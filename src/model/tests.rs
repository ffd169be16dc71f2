//! What one API alone cannot show: recorded streams, requests and faults in all three APIs.

mod corpus;
mod encoding;
mod faults;
mod names;
mod servers;
