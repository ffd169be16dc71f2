---@meta
-- Generated from src/protocol by tests/it/wire_types.rs; do not edit.

---Optional annotations for the client.
---@class wire.Annotations
---@field audience? wire.Role[] Intended recipients for this content, such as the user or assistant.
---@field lastModified? string Timestamp indicating when the underlying resource was last modified.
---@field priority? number Relative importance of this content when clients choose what to surface.
---@field _meta? table<string, any>

---Audio provided to or from an LLM.
---@class wire.AudioContent
---@field annotations? wire.Annotations Optional annotations that help clients decide how to display or route this content.
---@field data string Base64-encoded media payload.
---@field mimeType string MIME type describing the encoded media payload.
---@field _meta? table<string, any>

---Information about a command.
---@class wire.AvailableCommand
---@field name string Command name (e.g., `create_plan`, `research_codebase`).
---@field description string Human-readable description of what the command does.
---@field input? wire.AvailableCommandInput Input for the command if required
---@field _meta? table<string, any>

---The input specification for a command.
---@alias wire.AvailableCommandInput wire.UnstructuredCommandInput

---Available commands are ready or have changed
---@class wire.AvailableCommandsUpdate
---@field availableCommands wire.AvailableCommand[] Commands the agent can execute
---@field _meta? table<string, any>

---Binary resource contents.
---@class wire.BlobResourceContents
---@field blob string Base64-encoded bytes for a binary resource payload.
---@field mimeType? string MIME type describing the encoded media payload.
---@field uri string URI associated with this resource or media payload.
---@field _meta? table<string, any>

---Unique identifier for a context compaction within a session.
---@alias wire.CompactionId string

---Lifecycle state of a context compaction.
---@alias wire.CompactionStatus "in_progress"|"completed"|"failed"|"cancelled"|string

---A content block appended to a compaction's summary.
---@class wire.CompactionSummaryChunk
---@field compactionId wire.CompactionId ID of the compaction whose summary receives this content.
---@field content wire.ContentBlock One content block to append.
---@field _meta? table<string, any> Metadata scoped to this chunk.

---A context compaction upsert.
---@class wire.CompactionUpdate
---@field compactionId wire.CompactionId The Agent-owned ID of this compaction, unique within the session.
---@field status wire.CompactionStatus Current lifecycle status.
---@field summary? wire.ContentBlock[] Complete replacement user-displayable summary content for the compaction.
---@field error? string Human-readable error details for the compaction.
---@field _meta? table<string, any> Extensible metadata patch for this compaction.

---Something a prompt can mention.
---@class wire.Completion
---@field insert string Replaces the query.
---@field label string The text to show.
---@field kind wire.CompletionKind What it is.
---@field detail? string Additional text to show.

---Kinds of things a prompt can mention.
---@alias wire.CompletionKind "file"|"folder"|"symbol"|"diagnostics"|"selection"|"resource"

---Session configuration options have been updated.
---@class wire.ConfigOptionUpdate
---@field configOptions wire.SessionConfigOption[] The full set of configuration options and their current values.
---@field _meta? table<string, any>

---Standard content block (text, images, resources).
---@class wire.Content
---@field content wire.ContentBlock The actual content block.
---@field _meta? table<string, any>

---Text content.
---@class wire.ContentBlock.text: wire.TextContent
---@field type "text"

---Images for visual context or analysis.
---@class wire.ContentBlock.image: wire.ImageContent
---@field type "image"

---Audio data for transcription or analysis.
---@class wire.ContentBlock.audio: wire.AudioContent
---@field type "audio"

---References to resources that the agent can access.
---@class wire.ContentBlock.resource_link: wire.ResourceLink
---@field type "resource_link"

---Complete resource contents embedded directly in the message.
---@class wire.ContentBlock.resource: wire.EmbeddedResource
---@field type "resource"

---Content blocks represent displayable information in the Agent Client Protocol.
---@alias wire.ContentBlock wire.ContentBlock.text|wire.ContentBlock.image|wire.ContentBlock.audio|wire.ContentBlock.resource_link|wire.ContentBlock.resource

---A streamed item of content
---@class wire.ContentChunk
---@field content wire.ContentBlock A single item of content
---@field messageId? wire.MessageId A unique identifier for the message this chunk belongs to.
---@field _meta? table<string, any>

---Cost information for a session.
---@class wire.Cost
---@field amount number Total cumulative cost for session.
---@field currency string Unit of `amount`: an ISO 4217 currency code (e.g., "USD", "EUR") for money, or another unit such as "credits".
---@field _meta? table<string, any>

---The current mode of the session has changed
---@class wire.CurrentModeUpdate
---@field currentModeId wire.SessionModeId The ID of the current mode
---@field _meta? table<string, any>

---A diff representing file modifications.
---@class wire.Diff
---@field path string The absolute file path being modified.
---@field oldText? string The original content (omitted or `null` for new files).
---@field newText string The new content after modification.
---@field _meta? table<string, any>

---One document's diagnostics.
---@class wire.DocumentDiagnostics
---@field uri string The document.
---@field version? integer The version of the text they are of: the document's, once a report of it has arrived.
---@field diagnostics lsp.Diagnostic[] Its diagnostics.

---The contents of a resource, embedded into a prompt or tool call result.
---@class wire.EmbeddedResource
---@field annotations? wire.Annotations Optional annotations that help clients decide how to display or route this content.
---@field resource wire.EmbeddedResourceResource Embedded resource payload, either text or binary data.
---@field _meta? table<string, any>

---Resource content that can be embedded in a message.
---@alias wire.EmbeddedResourceResource wire.TextResourceContents|wire.BlobResourceContents

---JSON-RPC error object.
---@class wire.Error
---@field code wire.ErrorCode A number indicating the error type that occurred.
---@field message string A string providing a short description of the error.
---@field data? any Optional primitive or structured value that contains additional information about the error.

---Predefined error codes for common JSON-RPC and ACP-specific errors.
---@alias wire.ErrorCode integer

---**UNSTABLE**
---@class wire.ErrorStopReason
---@field error? wire.Error The failure, as a JSON-RPC error object.

---The work ended successfully.
---@class wire.IdleStateUpdate.end_turn
---@field stopReason "end_turn"
---@field _meta? table<string, any>
---@field stopReason? string Why foreground work stopped.

---The work ended because the agent reached the maximum number of tokens.
---@class wire.IdleStateUpdate.max_tokens
---@field stopReason "max_tokens"
---@field _meta? table<string, any>
---@field stopReason? string Why foreground work stopped.

---The work ended because the agent reached the maximum number of allowed agent requests.
---@class wire.IdleStateUpdate.max_turn_requests
---@field stopReason "max_turn_requests"
---@field _meta? table<string, any>
---@field stopReason? string Why foreground work stopped.

---The work ended because the agent refused to continue.
---@class wire.IdleStateUpdate.refusal
---@field stopReason "refusal"
---@field _meta? table<string, any>
---@field stopReason? string Why foreground work stopped.

---The work was cancelled.
---@class wire.IdleStateUpdate.cancelled
---@field stopReason "cancelled"
---@field _meta? table<string, any>
---@field stopReason? string Why foreground work stopped.

---The work ended because something failed.
---@class wire.IdleStateUpdate.error: wire.ErrorStopReason
---@field stopReason "error"
---@field _meta? table<string, any>
---@field stopReason? string Why foreground work stopped.

---Custom or future stop reason.
---@class wire.IdleStateUpdate.6
---@field stopReason string Unrecognized stop reason.
---@field _meta? table<string, any>
---@field stopReason? string Why foreground work stopped.

---No stop reason: `stopReason` is omitted or `null`.
---@class wire.IdleStateUpdate.none
---@field stopReason? nil
---@field _meta? table<string, any>
---@field stopReason? string Why foreground work stopped.

---The child is ready to process another prompt.
---@alias wire.IdleStateUpdate wire.IdleStateUpdate.end_turn|wire.IdleStateUpdate.max_tokens|wire.IdleStateUpdate.max_turn_requests|wire.IdleStateUpdate.refusal|wire.IdleStateUpdate.cancelled|wire.IdleStateUpdate.error|wire.IdleStateUpdate.6|wire.IdleStateUpdate.none

---An image provided to or from an LLM.
---@class wire.ImageContent
---@field annotations? wire.Annotations Optional annotations that help clients decide how to display or route this content.
---@field data string Base64-encoded media payload.
---@field mimeType string MIME type describing the encoded media payload.
---@field uri? string URI associated with this resource or media payload.
---@field _meta? table<string, any>

---A background command.
---@class wire.Job
---@field id integer Its number in the session.
---@field command string The command line.
---@field state wire.JobState Whether it runs.
---@field exitCode? integer Its exit code, if it exited on its own and the code is known.
---@field startedAt integer When it was started, in milliseconds since 1970 (UTC).
---@field ports integer[] The TCP ports it listens on.

---A piece of a job's output.
---@class wire.JobOutput
---@field text string The text, without other terminal sequences.
---@field offset integer Where the next output begins.
---@field line string The unfinished line after the text.

---Whether a background command runs.
---@alias wire.JobState "running"|"exited"|"stopped"

---The answer to [`JobsParams`], and `_tandem/jobs/changed`, a notification: one of them began or ended.
---@class wire.Jobs
---@field sessionId string The session.
---@field jobs wire.Job[] The oldest first.

---A range of lines.
---@class wire.Lines
---@field start integer The first line, counted from 1; if `count` is 0, the range is before that line.
---@field count integer The number of lines.

---Response from loading an existing session.
---@class wire.LoadSessionResponse
---@field modes? wire.SessionModeState Initial mode state if supported by the Agent
---@field configOptions? wire.SessionConfigOption[] Initial session configuration options if supported by the Agent.
---@field _meta? table<string, any>

---Unique identifier for a message within a session.
---@alias wire.MessageId string

---Response from creating a new session.
---@class wire.NewSessionResponse
---@field sessionId wire.SessionId Unique identifier for the created session.
---@field modes? wire.SessionModeState Initial mode state if supported by the Agent
---@field configOptions? wire.SessionConfigOption[] Initial session configuration options if supported by the Agent.
---@field _meta? table<string, any>

---Fire-and-forget information for the user.
---@class wire.Notice
---@field severity wire.NoticeSeverity Presentation severity hint.
---@field title string Required non-empty plain-text title that can stand alone.
---@field description? string Optional plain-text detail or guidance.
---@field _meta? table<string, any> Metadata scoped to this notice.

---Severity hint for a session notice.
---@alias wire.NoticeSeverity "info"|"warning"|"error"|string

---Neighboring lines that one tool call wrote.
---@class wire.Origin
---@field lines wire.Lines The lines.
---@field sessionId string The session, which may not be open.
---@field turn integer The turn.
---@field prompt string The beginning of its prompt.
---@field model string `provider/model`.
---@field by string The title of the tool call or command.
---@field edited boolean Whether somebody has edited the lines since.

---`_tandem/origins`, a request: which turns wrote the uncommitted lines of an open document.
---@class wire.OriginsParams
---@field textDocument lsp.TextDocumentIdentifier The document.
---@field range? lsp.Range Only these lines of it.

---An option presented to the user when requesting permission.
---@class wire.PermissionOption
---@field optionId wire.PermissionOptionId Unique identifier for this permission option.
---@field name string Human-readable label to display to the user.
---@field kind wire.PermissionOptionKind Hint about the nature of this permission option.
---@field _meta? table<string, any>

---Unique identifier for a permission option.
---@alias wire.PermissionOptionId string

---The type of permission option being presented to the user.
---@alias wire.PermissionOptionKind "allow_once"|"allow_always"|"reject_once"|"reject_always"

---An execution plan for accomplishing complex tasks.
---@class wire.Plan
---@field entries wire.PlanEntry[] The list of tasks to be accomplished.
---@field _meta? table<string, any>

---A single entry in the execution plan.
---@class wire.PlanEntry
---@field content string Human-readable description of what this task aims to accomplish.
---@field priority wire.PlanEntryPriority The relative importance of this task.
---@field status wire.PlanEntryStatus Current execution status of this task.
---@field _meta? table<string, any>

---Priority levels for plan entries.
---@alias wire.PlanEntryPriority "high"|"medium"|"low"

---Status of a plan entry in the execution flow.
---@alias wire.PlanEntryStatus "pending"|"in_progress"|"completed"

---The states of a prompt.
---@alias wire.PromptState "queued"|"running"|"joined"|"returned"|"ended"

---The prompt turn was cancelled before the user responded.
---@class wire.RequestPermissionOutcome.cancelled
---@field outcome "cancelled"

---The user selected one of the provided options.
---@class wire.RequestPermissionOutcome.selected: wire.SelectedPermissionOutcome
---@field outcome "selected"

---The outcome of a permission request.
---@alias wire.RequestPermissionOutcome wire.RequestPermissionOutcome.cancelled|wire.RequestPermissionOutcome.selected

---Request for user permission to execute a tool call.
---@class wire.RequestPermissionRequest
---@field sessionId wire.SessionId The session ID for this request.
---@field toolCall wire.ToolCallUpdate Details about the tool call requiring permission.
---@field options wire.PermissionOption[] Available permission options for the user to choose from.
---@field _meta? table<string, any>

---Response to a permission request.
---@class wire.RequestPermissionResponse
---@field outcome wire.RequestPermissionOutcome The user's decision on the permission request.
---@field _meta? table<string, any>

---Foreground work is blocked on user action.
---@class wire.RequiresActionStateUpdate
---@field _meta? table<string, any>

---A resource that the server is capable of reading, included in a prompt or tool call result.
---@class wire.ResourceLink
---@field annotations? wire.Annotations Optional annotations that help clients decide how to display or route this content.
---@field description? string Optional human-readable details shown with this protocol object.
---@field mimeType? string MIME type describing the encoded media payload.
---@field name string Human-readable name shown for this protocol object.
---@field size? integer Optional size of the linked resource in bytes, if known.
---@field title? string Optional display title for end-user UI.
---@field uri string URI associated with this resource or media payload.
---@field _meta? table<string, any>

---The sender or recipient of messages and data in a conversation.
---@alias wire.Role "assistant"|"user"

---Foreground work is in progress.
---@class wire.RunningStateUpdate
---@field _meta? table<string, any>

---The user selected one of the provided options.
---@class wire.SelectedPermissionOutcome
---@field optionId wire.PermissionOptionId The ID of the option the user selected.
---@field _meta? table<string, any>

---**UNSTABLE**
---@class wire.SessionCancelCapabilities
---@field _meta? table<string, any>

---A boolean on/off toggle session configuration option payload.
---@class wire.SessionConfigBoolean
---@field currentValue boolean The current value of the boolean option.

---Unique identifier for a session configuration option value group.
---@alias wire.SessionConfigGroupId string

---Unique identifier for a session configuration option.
---@alias wire.SessionConfigId string

---Single-value selector (dropdown).
---@class wire.SessionConfigOption.select: wire.SessionConfigSelect
---@field type "select"
---@field id wire.SessionConfigId Unique identifier for the configuration option.
---@field name string Human-readable label for the option.
---@field description? string Optional description for the Client to display to the user.
---@field category? wire.SessionConfigOptionCategory Optional semantic category for this option (UX only).
---@field _meta? table<string, any>

---Boolean on/off toggle.
---@class wire.SessionConfigOption.boolean: wire.SessionConfigBoolean
---@field type "boolean"
---@field id wire.SessionConfigId Unique identifier for the configuration option.
---@field name string Human-readable label for the option.
---@field description? string Optional description for the Client to display to the user.
---@field category? wire.SessionConfigOptionCategory Optional semantic category for this option (UX only).
---@field _meta? table<string, any>

---A session configuration option selector and its current state.
---@alias wire.SessionConfigOption wire.SessionConfigOption.select|wire.SessionConfigOption.boolean

---Semantic category for a session configuration option.
---@alias wire.SessionConfigOptionCategory "mode"|"model"|"model_config"|"thought_level"|string

---A single-value selector (dropdown) session configuration option payload.
---@class wire.SessionConfigSelect
---@field currentValue wire.SessionConfigValueId The currently selected value.
---@field options wire.SessionConfigSelectOptions The set of selectable options.

---A group of possible values for a session configuration option.
---@class wire.SessionConfigSelectGroup
---@field group wire.SessionConfigGroupId Unique identifier for this group.
---@field name string Human-readable label for this group.
---@field options wire.SessionConfigSelectOption[] The set of option values in this group.
---@field _meta? table<string, any>

---A possible value for a session configuration option.
---@class wire.SessionConfigSelectOption
---@field value wire.SessionConfigValueId Unique identifier for this option value.
---@field name string Human-readable label for this option value.
---@field description? string Optional description for this option value.
---@field _meta? table<string, any>

---Possible values for a session configuration option.
---@alias wire.SessionConfigSelectOptions wire.SessionConfigSelectOption[]|wire.SessionConfigSelectGroup[]

---Unique identifier for a session configuration option value.
---@alias wire.SessionConfigValueId string

---A unique identifier for a conversation session between a client and agent.
---@alias wire.SessionId string

---Information about a session returned by session/list
---@class wire.SessionInfo
---@field sessionId wire.SessionId Unique identifier for the session
---@field cwd string The working directory for this session.
---@field additionalDirectories? string[] Additional workspace roots reported for this session.
---@field title? string Human-readable title for the session
---@field updatedAt? string ISO 8601 timestamp of last activity
---@field _meta? table<string, any>

---Update to session metadata.
---@class wire.SessionInfoUpdate
---@field title? string Human-readable title for the session.
---@field updatedAt? string ISO 8601 timestamp of last activity.
---@field _meta? table<string, any>

---**UNSTABLE**
---@class wire.SessionMessage
---@field messageId wire.MessageId Identifier of this message within the enclosing session's transcript.
---@field senderSessionId? wire.SessionId The sending session.
---@field recipientSessionId? wire.SessionId The receiving session.
---@field senderMessageId? wire.MessageId On an incoming view, the `messageId` of the same message's outgoing view in the sender's transcript.
---@field recipientMessageId? wire.MessageId On an outgoing view, the `messageId` of the same message's incoming view in the recipient's transcript.
---@field content? wire.ContentBlock[] Omitted leaves content unchanged.
---@field _meta? table<string, any> Omitted leaves metadata unchanged.

---**UNSTABLE**
---@class wire.SessionMessageChunk
---@field messageId wire.MessageId Identifier of this message within the enclosing session's transcript.
---@field content wire.ContentBlock A single content block appended to the message.
---@field _meta? table<string, any> Optional and nullable chunk-scoped metadata.

---A mode the agent can operate in.
---@class wire.SessionMode
---@field id wire.SessionModeId Stable identifier used to refer to this protocol object in later messages.
---@field name string Human-readable name shown for this protocol object.
---@field description? string Optional human-readable details shown with this protocol object.
---@field _meta? table<string, any>

---Unique identifier for a Session Mode.
---@alias wire.SessionModeId string

---The set of modes and the one currently active.
---@class wire.SessionModeState
---@field currentModeId wire.SessionModeId The current mode the Agent is in.
---@field availableModes wire.SessionMode[] The set of modes that the Agent can operate in
---@field _meta? table<string, any>

---A chunk of the user's message being streamed.
---@class wire.SessionUpdate.user_message_chunk: wire.ContentChunk
---@field sessionUpdate "user_message_chunk"

---A chunk of the agent's response being streamed.
---@class wire.SessionUpdate.agent_message_chunk: wire.ContentChunk
---@field sessionUpdate "agent_message_chunk"

---A chunk of the agent's internal reasoning being streamed.
---@class wire.SessionUpdate.agent_thought_chunk: wire.ContentChunk
---@field sessionUpdate "agent_thought_chunk"

---Notification that a new tool call has been initiated.
---@class wire.SessionUpdate.tool_call: wire.ToolCall
---@field sessionUpdate "tool_call"

---Update on the status or results of a tool call.
---@class wire.SessionUpdate.tool_call_update: wire.ToolCallUpdate
---@field sessionUpdate "tool_call_update"

---The agent's execution plan for complex tasks.
---@class wire.SessionUpdate.plan: wire.Plan
---@field sessionUpdate "plan"

---Available commands are ready or have changed
---@class wire.SessionUpdate.available_commands_update: wire.AvailableCommandsUpdate
---@field sessionUpdate "available_commands_update"

---The current mode of the session has changed
---@class wire.SessionUpdate.current_mode_update: wire.CurrentModeUpdate
---@field sessionUpdate "current_mode_update"

---Session configuration options have been updated.
---@class wire.SessionUpdate.config_option_update: wire.ConfigOptionUpdate
---@field sessionUpdate "config_option_update"

---Session metadata has been updated (title, timestamps, custom metadata)
---@class wire.SessionUpdate.session_info_update: wire.SessionInfoUpdate
---@field sessionUpdate "session_info_update"

---Context window and cost update for the session.
---@class wire.SessionUpdate.usage_update: wire.UsageUpdate
---@field sessionUpdate "usage_update"

---Information for the user that is not part of session history.
---@class wire.SessionUpdate.notice: wire.Notice
---@field sessionUpdate "notice"

---A context compaction has been created or updated.
---@class wire.SessionUpdate.compaction_update: wire.CompactionUpdate
---@field sessionUpdate "compaction_update"

---A content block appended to a context compaction's retained summary.
---@class wire.SessionUpdate.compaction_summary_chunk: wire.CompactionSummaryChunk
---@field sessionUpdate "compaction_summary_chunk"

---**UNSTABLE**
---@class wire.SessionUpdate.subagent_update: wire.SubagentUpdate
---@field sessionUpdate "subagent_update"

---**UNSTABLE**
---@class wire.SessionUpdate.session_message: wire.SessionMessage
---@field sessionUpdate "session_message"

---**UNSTABLE**
---@class wire.SessionUpdate.session_message_chunk: wire.SessionMessageChunk
---@field sessionUpdate "session_message_chunk"

---Different types of updates that can be sent during session processing.
---@alias wire.SessionUpdate wire.SessionUpdate.user_message_chunk|wire.SessionUpdate.agent_message_chunk|wire.SessionUpdate.agent_thought_chunk|wire.SessionUpdate.tool_call|wire.SessionUpdate.tool_call_update|wire.SessionUpdate.plan|wire.SessionUpdate.available_commands_update|wire.SessionUpdate.current_mode_update|wire.SessionUpdate.config_option_update|wire.SessionUpdate.session_info_update|wire.SessionUpdate.usage_update|wire.SessionUpdate.notice|wire.SessionUpdate.compaction_update|wire.SessionUpdate.compaction_summary_chunk|wire.SessionUpdate.subagent_update|wire.SessionUpdate.session_message|wire.SessionUpdate.session_message_chunk

---What a session is doing.
---@alias wire.State "ready"|"running"|"waiting"|"no_model"

---Foreground work is in progress.
---@class wire.StateUpdate.running: wire.RunningStateUpdate
---@field state "running"

---The child is ready to process another prompt.
---@class wire.StateUpdate.idle: wire.IdleStateUpdate
---@field state "idle"

---Foreground work is blocked on user action.
---@class wire.StateUpdate.requires_action: wire.RequiresActionStateUpdate
---@field state "requires_action"

---The Agent cannot currently determine foreground activity.
---@class wire.StateUpdate.unknown: wire.UnknownStateUpdate
---@field state "unknown"

---Custom or future state.
---@class wire.StateUpdate.4
---@field state string Unrecognized state discriminator.

---**UNSTABLE**
---@alias wire.StateUpdate wire.StateUpdate.running|wire.StateUpdate.idle|wire.StateUpdate.requires_action|wire.StateUpdate.unknown|wire.StateUpdate.4

---`_tandem/status`, a notification: the state of a session, for a status line.
---@class wire.Status
---@field sessionId string The session.
---@field state wire.State What it is doing.
---@field queued integer How many prompts are queued.
---@field mode string Its mode.
---@field model? string `provider/model`.
---@field effort? string The reasoning effort, unless it is the configured one.
---@field usage? wire.Usage Its usage, once the first answer has arrived.
---@field message? string A notice for people.
---@field passing boolean Whether the notice, such as "retrying after 2 s", applies only until the turn continues.

---**UNSTABLE**
---@class wire.SubagentSessionCapabilities
---@field cancel? wire.SessionCancelCapabilities Permits the client to cancel this child's current work without ending the session.
---@field _meta? table<string, any>

---**UNSTABLE**
---@class wire.SubagentUpdate
---@field sessionId wire.SessionId The opaque session ID identifying the child in all ACP messages.
---@field title? string The parent's human-readable display title for this child.
---@field description? string The parent's human-readable description of the child's role or purpose.
---@field capabilities? wire.SubagentSessionCapabilities Client-initiated session mutations permitted for this subagent session.
---@field state? wire.StateUpdate Current state snapshot for the child session.
---@field cwd? string The child's working directory.
---@field additionalDirectories? string[] Additional workspace roots for the child.
---@field _meta? table<string, any>

---Embed a terminal created with `terminal/create` by its id.
---@class wire.Terminal
---@field terminalId wire.TerminalId Identifier of the terminal instance to embed in the content stream.
---@field _meta? table<string, any>

---Typed identifier used for terminal values on the wire.
---@alias wire.TerminalId string

---Text provided to or from an LLM.
---@class wire.TextContent
---@field annotations? wire.Annotations Optional annotations that help clients decide how to display or route this content.
---@field text string Text payload carried by this content block.
---@field _meta? table<string, any>

---Text-based resource contents.
---@class wire.TextResourceContents
---@field mimeType? string MIME type describing the encoded media payload.
---@field text string Text payload carried by this content block.
---@field uri string URI associated with this resource or media payload.
---@field _meta? table<string, any>

---Represents a tool call that the language model has requested.
---@class wire.ToolCall
---@field toolCallId wire.ToolCallId Unique identifier for this tool call within the session.
---@field title string Human-readable title describing what the tool is doing.
---@field name? string Programmatic name of the tool being invoked.
---@field kind? wire.ToolKind The category of tool being invoked.
---@field status? wire.ToolCallStatus Current execution status of the tool call.
---@field content? wire.ToolCallContent[] Content produced by the tool call.
---@field locations? wire.ToolCallLocation[] File locations affected by this tool call.
---@field rawInput? any Raw input parameters sent to the tool.
---@field rawOutput? any Raw output returned by the tool.
---@field _meta? table<string, any>

---Standard content block (text, images, resources).
---@class wire.ToolCallContent.content: wire.Content
---@field type "content"

---File modification shown as a diff.
---@class wire.ToolCallContent.diff: wire.Diff
---@field type "diff"

---Embed a terminal created with `terminal/create` by its id.
---@class wire.ToolCallContent.terminal: wire.Terminal
---@field type "terminal"

---Content produced by a tool call.
---@alias wire.ToolCallContent wire.ToolCallContent.content|wire.ToolCallContent.diff|wire.ToolCallContent.terminal

---Unique identifier for a tool call within a session.
---@alias wire.ToolCallId string

---A file location being accessed or modified by a tool.
---@class wire.ToolCallLocation
---@field path string The absolute file path being accessed or modified.
---@field line? integer Optional 1-based line number within the file.
---@field _meta? table<string, any>

---Execution status of a tool call.
---@alias wire.ToolCallStatus "pending"|"in_progress"|"completed"|"failed"

---An update to an existing tool call.
---@class wire.ToolCallUpdate
---@field toolCallId wire.ToolCallId The ID of the tool call being updated.
---@field kind? wire.ToolKind Update the tool kind.
---@field status? wire.ToolCallStatus Update the execution status.
---@field title? string Update the human-readable title.
---@field name? string Update the programmatic name of the tool being invoked.
---@field content? wire.ToolCallContent[] Replace the content collection.
---@field locations? wire.ToolCallLocation[] Replace the locations collection.
---@field rawInput? any Update the raw input.
---@field rawOutput? any Update the raw output.
---@field _meta? table<string, any>

---Categories of tools that can be invoked.
---@alias wire.ToolKind "read"|"edit"|"delete"|"move"|"search"|"execute"|"think"|"fetch"|"switch_mode"|"other"

---`_tandem/turn`, a notification: the state of a prompt.
---@class wire.Turn
---@field sessionId string The session.
---@field promptId string The prompt.
---@field state wire.PromptState Its state.
---@field turn? integer The number of its turn, as in `_tandem/review` (`running`; missing if the prompt is a command).
---@field position? integer Its position in the queue, counted from 1 (`queued`).
---@field reason? string ACP's stop reason or the failure's code (`ended`), or why the model never saw it (`returned`).
---@field message? string The failure, for people (`ended`).
---@field prompt? wire.ContentBlock[] The prompt itself (`returned`).

---**UNSTABLE**
---@class wire.UnknownStateUpdate
---@field _meta? table<string, any>

---All text that was typed after the command name is provided as input.
---@class wire.UnstructuredCommandInput
---@field hint string A hint to display when the input hasn't been provided yet
---@field _meta? table<string, any>

---The usage of a session.
---@class wire.Usage
---@field used integer Tokens in the context window.
---@field size? integer The size of the window, if known.
---@field cost? number US dollars for the whole session, if prices are known.

---Context window and cost update for a session.
---@class wire.UsageUpdate
---@field used integer Tokens currently in context.
---@field size integer Total context window size in tokens.
---@field cost? wire.Cost Cumulative session cost (optional).
---@field _meta? table<string, any>
