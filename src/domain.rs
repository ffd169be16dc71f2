//! Types shared by all modules: prompts, tool kinds and results, model errors. Plain data that depends only on `text`.

mod absent;
pub mod any_path;
mod completion;
mod editor_models;
mod endpoint;
mod finding;
mod finish;
mod host;
mod job;
mod language;
mod limits;
mod lock;
mod model;
mod programs;
mod prompt;
mod stored;
mod style;
mod tool;

pub use absent::is_absent;
pub use any_path::AnyPath;
pub use completion::{Completion, CompletionKind};
pub use editor_models::{EditorAnswer, EditorModels};
pub use endpoint::{
    Api, CompletionApi, EditFormat, Endpoint, Key, LongRequests, Prices, Proxy, TimeLimits,
    without_password,
};
pub use finding::{Finding, Verdict};
pub use finish::{Counts, Finish};
pub use host::{is_local, is_loopback, same_origin};
pub use job::{JobOutput, JobState, JobStatus};
pub use language::Operation;
pub use limits::{Allowance, Bounds, Limits};
pub use lock::lock;
pub use model::{Effort, ErrorCode, Failure, Usage, without_date};
pub use programs::{distrust_programs_in, find_program, find_program_in, outside_workspaces};
pub use prompt::{Attachment, Focus, Prompt};
pub use stored::{Charset, Stored};
pub use style::{Color, Style, Styled, Weight};
pub use tool::{
    CommandLine, Exit, FileDiff, Image, Location, PlanEntry, PlanPriority, PlanStatus, Preview,
    ToolError, ToolKind, Undo,
};
