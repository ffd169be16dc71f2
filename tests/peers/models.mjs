// `tandem run` against third-party model servers: it has to receive what they were told to say.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { finish, freePort, load, run, test, withFolder } from './harness.mjs';

const KEY = 'sk-test-000000000000';
const ANSWER = 'Grüße aus dem Modell: it says "hello", 你好 and 👋🏽 — that is all.';
const DIALECTS = ['chat', 'responses', 'messages'];

const settings = (url, api, more = {}) => ({
  TANDEM_BASE_URL: url, TANDEM_MODEL: 'gpt-4o', TANDEM_API: api, TANDEM_API_KEY: KEY, ...more,
});

// The prompt that makes the model read note.txt, and the expected result.
async function reads(folder, with_, prompt, answer) {
  await writeFile(path.join(folder, 'note.txt'), 'the note says hello\n');
  const heard = await run(folder, with_, prompt);
  assert.equal(heard.code, 0, heard.stderr + JSON.stringify(heard.done));
  const calls = heard.of('tool_call_complete').map(({ call }) => [call.name, call.arguments]);
  assert.deepEqual(calls, [['read_file', { path: 'note.txt' }]]);
  const [end, ...others] = heard.of('tool_execution_end');
  assert.equal(others.length, 0, 'exactly one end for a call');
  assert.equal(end.result.is_error, false);
  assert.match(end.result.content, /the note says hello/);
  assert.equal(heard.done.final_text, answer);
  assert.equal(heard.done.termination_reason, 'end_turn');
  return heard;
}

// --- npm @copilotkit/aimock: all three APIs

const { LLMock } = await load('@copilotkit/aimock');
// Three characters per chunk: text and arguments arrive in many pieces.
const aimock = new LLMock({ port: 0, chunkSize: 3, logLevel: 'warn' });
aimock
  .onMessage('say the words', { content: ANSWER, usage: { prompt_tokens: 321, completion_tokens: 45 } })
  .onMessage('think first', { content: 'Forty-two.', reasoning: 'Six times seven, I suppose.' })
  .on({ userMessage: 'read the note', hasToolResult: false }, {
    toolCalls: [{ id: 'call_note', name: 'read_file', arguments: JSON.stringify({ path: 'note.txt' }) }],
  })
  .on({ userMessage: 'read the note', hasToolResult: true, toolResultContains: 'the note says hello' }, { content: 'It says hello.' })
  .on({ userMessage: 'read two', hasToolResult: false }, {
    content: 'Both at once.',
    toolCalls: ['a.txt', 'b.txt'].map((file) => ({ name: 'read_file', arguments: JSON.stringify({ path: file }) })),
  })
  .on({ userMessage: 'read two', hasToolResult: true }, { content: 'Read both.' })
  .onMessage('be refused', { error: { message: 'no such deployment', type: 'invalid_request_error' }, status: 404 });
await aimock.start();

await test('aimock really cuts arguments into fragments', async () => {
  const messages = [{ role: 'user', content: 'read the note' }];
  const body = JSON.stringify({ model: 'gpt-4o', stream: true, messages });
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(`${aimock.url}/v1/chat/completions`, { method: 'POST', headers, body });
  const fragments = (await answer.text()).split('\n').filter((line) => line.includes('"arguments"'));
  assert.ok(fragments.length > 3, `${fragments.length} fragments`);
});

for (const api of DIALECTS) {
  const url = `${aimock.url}/v1`;
  const name = (what) => `aimock, ${api}: ${what}`;

  await test(name('text arrives whole, with its usage'), () => withFolder(async (folder) => {
    const heard = await run(folder, settings(url, api), 'say the words');
    assert.equal(heard.code, 0, heard.stderr);
    assert.equal(heard.text, ANSWER);
    assert.equal(heard.done.final_text, ANSWER);
    assert.ok(heard.of('text_delta').length > 0);
    const [usage] = heard.of('usage');
    assert.deepEqual([usage.input, usage.output], [321, 45]);
  }));

  await test(name('reasoning is apart from the answer'), () => withFolder(async (folder) => {
    const model = api === 'messages' ? 'claude-sonnet-4-6' : 'o3';
    const heard = await run(folder, settings(url, api, { TANDEM_MODEL: model }), 'think first');
    assert.equal(heard.of('reasoning_delta').map((event) => event.content).join(''), 'Six times seven, I suppose.');
    assert.equal(heard.text, 'Forty-two.');
  }));

  await test(name('a call in fragments reads a file'), () => withFolder(async (folder) => {
    const heard = await reads(folder, settings(url, api), 'read the note', 'It says hello.');
    assert.equal(heard.of('tool_call_complete')[0].call.id, 'call_note');
  }));

  await test(name('two calls in one answer'), () => withFolder(async (folder) => {
    await writeFile(path.join(folder, 'a.txt'), 'alpha\n');
    await writeFile(path.join(folder, 'b.txt'), 'beta\n');
    const heard = await run(folder, settings(url, api), 'read two');
    assert.equal(heard.code, 0, heard.stderr);
    const results = heard.of('tool_execution_end').map(({ result }) => result.content);
    assert.equal(results.length, 2);
    assert.ok(results.some((text) => text.includes('alpha')) && results.some((text) => text.includes('beta')));
    assert.equal(new Set(heard.of('tool_execution_end').map((end) => end.call_id)).size, 2);
    assert.equal(heard.done.final_text, 'Read both.');
  }));

  await test(name('an error is told in its own words'), () => withFolder(async (folder) => {
    const heard = await run(folder, settings(url, api), 'be refused');
    assert.equal(heard.code, 1);
    const [error] = heard.of('error');
    assert.equal(error.status, 404);
    assert.match(error.message, /no such deployment/);
  }));

  await test(name('too many requests are tried again'), () => withFolder(async (folder) => {
    aimock.nextRequestError(429, { message: 'slow down' });
    const heard = await run(folder, settings(url, api), 'say the words');
    assert.equal(heard.code, 0, heard.stderr);
    assert.equal(heard.of('retry').length, 1);
    assert.match(heard.of('retry')[0].reason, /slow down/);
    assert.equal(heard.text, ANSWER, 'no word twice');
  }));
}
await aimock.stop();

// --- npm openai-mock-api: the chat API, with its own token counts and key check

const { createMockServer } = await load('openai-mock-api');
const port = await freePort();
const call = { id: 'call_abc', type: 'function', function: { name: 'read_file', arguments: '{"path": "note.txt"}' } };
const any = (role) => ({ role, matcher: 'any' });
const says = (words, ...rest) => [any('system'), { role: 'user', content: words, matcher: 'contains' }, ...rest];
const openai = await createMockServer({
  config: {
    apiKey: KEY,
    port,
    responses: [
      { id: 'text', messages: says('say the words', { role: 'assistant', content: ANSWER }) },
      { id: 'call', messages: says('read the note', { role: 'assistant', tool_calls: [call] }) },
      {
        id: 'result',
        messages: says('read the note', { role: 'assistant', tool_calls: [call] },
          { role: 'tool', matcher: 'any', tool_call_id: 'call_abc' }, { role: 'assistant', content: 'It says hello.' }),
      },
    ],
  },
  port,
});
await openai.start();
const openaiUrl = `http://127.0.0.1:${port}/v1`;

await test('openai-mock-api: text arrives whole', () => withFolder(async (folder) => {
  const heard = await run(folder, settings(openaiUrl, 'chat'), 'say the words');
  assert.equal(heard.code, 0, heard.stderr + JSON.stringify(heard.of('error')));
  assert.equal(heard.text, ANSWER);
}));
await test('openai-mock-api: a call reads a file', () => withFolder(async (folder) => {
  await reads(folder, settings(openaiUrl, 'chat'), 'read the note', 'It says hello.');
}));
await test('openai-mock-api: a wrong key is refused with the way out', () => withFolder(async (folder) => {
  const heard = await run(folder, settings(openaiUrl, 'chat', { TANDEM_API_KEY: 'sk-wrong' }), 'say the words');
  assert.equal(heard.code, 1);
  const [error] = heard.of('error');
  assert.deepEqual([error.code, error.status], ['auth', 401]);
  assert.match(error.message, /TANDEM_API_KEY/);
}));
await openai.stop();

finish();
