---@meta
-- The wire types that the plugin reads: Agent Client Protocol v1 and tandem's own `_tandem/` messages.

---@alias tandem.ToolStatus 'pending'|'in_progress'|'completed'|'failed'

---@class tandem.ContentBlock
---@field type 'text'|'resource'|'resource_link'|string
---@field text? string
---@field resource? { uri: string, mimeType: string, text: string }
---@field uri? string
---@field name? string
---@field mimeType? string
---@field data? string base64

---@class tandem.ToolContent
---@field type 'diff'|'content'|string
---@field path? string absolute
---@field oldText? string absent for a new file
---@field newText? string
---@field content? tandem.ContentBlock

---@class tandem.ToolCall
---@field toolCallId string
---@field title? string
---@field kind? 'read'|'edit'|'search'|'execute'|'think'|'other'|string
---@field status? tandem.ToolStatus
---@field content? tandem.ToolContent[]
---@field locations? { path: string, line?: integer }[]

---@class tandem.PlanEntry
---@field content string
---@field status 'pending'|'in_progress'|'completed'

---@class tandem.Update
---@field sessionUpdate string
---@field content? any
---@field entries? tandem.PlanEntry[]
---@field currentModeId? string
---@field configOptions? tandem.ConfigOption[]
---@field used? integer
---@field size? integer

---@class tandem.ConfigOption
---@field id string
---@field category string
---@field currentValue string
---@field options { value: string, name: string }[]

---@class tandem.Kept a conversation that was kept
---@field sessionId string
---@field title? string
---@field updatedAt? string

---@class tandem.AvailableCommand
---@field name string
---@field description string
---@field input? { hint: string }

---@class tandem.Completion
---@field insert string
---@field label string
---@field kind ''|'file'|'folder'|'symbol'|'diagnostics'|'selection'
---@field detail? string

---@class tandem.PermissionOption
---@field optionId string
---@field name string
---@field kind 'allow_once'|'allow_always'|'reject_once'|'reject_always'
---@field _meta? { tandem?: { rule?: string } }

---@class tandem.PermissionParams
---@field sessionId string
---@field toolCall tandem.ToolCall
---@field options tandem.PermissionOption[]

---@class tandem.Outcome
---@field outcome { outcome: 'selected'|'cancelled', optionId?: string, _meta?: { tandem: { rule: string } } }

---@class tandem.Opened the answer to session/new, session/resume or session/load
---@field sessionId? string of a new one
---@field modes? { availableModes: { id: string, name: string }[], currentModeId: string }
---@field configOptions? tandem.ConfigOption[]

---@class tandem.Coming a conversation that is being loaded
---@field id string
---@field callbacks fun()[] what arrived for it so far

---@class tandem.StatusParams
---@field sessionId? string
---@field state 'ready'|'running'|'waiting'|'no_model'
---@field model? string
---@field mode? string
---@field message? string
