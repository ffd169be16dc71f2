--- The input of a chat: its text is sent, restored, or replaced by an earlier prompt.
local context = require('tandem.context')
local history = require('tandem.history')

local api = vim.api

--- How many versions of a draft are kept.
local KEPT = 100

---@class tandem.Input
---@field private chat tandem.Chat
---@field private began? boolean whether there was a draft after the last key
---@field private drafts string[] the draft after each change
---@field private at integer the index of what it is now
---@field private recalled? { at: integer, written: table<integer, string> } the place in the history of prompts
local Input = {}
Input.__index = Input

local M = {}

---@param chat tandem.Chat
---@return tandem.Input
function M.new(chat)
  return setmetatable({ chat = chat, drafts = { '' }, at = 1 }, Input)
end

--- After a change, which can be undone. Neovim's own undo forgets it as soon as more of an answer arrives above.
function Input:changed()
  local draft = self.chat:transcript():draft()
  if draft == self.drafts[self.at] then
    return
  elseif self.at == KEPT then
    table.remove(self.drafts, 1)
    self.at = KEPT - 1
  end
  self.at = self.at + 1
  self.drafts[self.at], self.drafts[self.at + 1] = draft, nil
end

--- Undoes or redoes a change.
---@param step -1|1
function Input:undo(step)
  local draft = self.drafts[self.at + step]
  if draft then
    self.at = self.at + step
    self.chat:transcript():set_input(draft)
  end
end

--- The draft; empty if there is no input.
---@return string?
function Input:written()
  local buf = self.chat.buf
  return buf and api.nvim_buf_is_loaded(buf) and self.chat:transcript():input_text() or nil
end

--- After each key. At the first character of a prompt, a local server can start to process what precedes it.
function Input:typed()
  local began = self:written() ~= ''
  if began and not self.began then
    self.chat.session:typing_began()
  end
  self.began = began
end

---@param use fun(prompt: string)
function Input:take(use)
  local text = self.chat:transcript()
  local prompt = text:input_text()
  if prompt ~= '' then
    self:changed()
    text:set_input('')
    self:changed()
    self.recalled, self.began = nil, nil
    history.add(self.chat.session.root, prompt)
    use(prompt)
  end
end

--- Sends the draft. While a question of the model or a plan is open, it is the answer.
function Input:submit()
  self:take(function(prompt)
    self.chat.session:prompt(prompt)
    require('tandem.permission').answer_in_chat(self.chat.session)
  end)
end

--- Sends the draft to the running turn.
function Input:steer()
  self:take(function(prompt)
    self.chat.session:steer(prompt)
  end)
end

--- Replaces the draft by an earlier or a later prompt; the draft returns after the last one.
---@param step -1|1
function Input:recall(step)
  local prompts = history.load(self.chat.session.root)
  local recalled = self.recalled or { at = #prompts + 1, written = {} }
  local next = recalled.at + step
  if next >= 1 and next <= #prompts + 1 then
    local text = self.chat:transcript()
    recalled.written[recalled.at] = text:input_text()
    recalled.at, self.recalled = next, recalled
    text:set_input(recalled.written[next] or prompts[next] or '')
  end
end

--- Appends the image in the clipboard to the draft.
function Input:paste_image()
  local image, problem = require('tandem.image').paste()
  if not image then
    return require('tandem.say')(problem, vim.log.levels.WARN)
  end
  self:give_back(image)
end

--- Appends a text to the draft; a selection becomes a mention.
---@param text string
---@param selection? tandem.Selection
function Input:give_back(text, selection)
  local mention = selection and context.mention(selection)
  text = mention and ('%s %s'):format(text, mention) or text
  local transcript = self.chat:transcript()
  local written = transcript:input_text()
  -- After a crash and a restart, it is in the saved draft and in the server's journal.
  if ('\n\n%s\n\n'):format(written):find(('\n\n%s\n\n'):format(text), 1, true) then
    return
  end
  transcript:set_input(written == '' and text or ('%s\n\n%s'):format(written, text))
end

return M
