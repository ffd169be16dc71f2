// One session, three clients: it starts in a real Neovim, continues over ACP with the official client, and then without any editor. The model server records
// each request as received: each contains the earlier messages byte for byte.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import path from 'node:path';
import { Readable, Writable } from 'node:stream';
import { promisify } from 'node:util';
import { environment, finish, load, run, tandem, test, withFolder } from './harness.mjs';

const acp = await load('@agentclientprotocol/sdk');
const { agent, client } = acp.methods;
const { NVIM } = process.env;
const lua = path.join(import.meta.dirname, 'journey.lua');

// A model that gives these replies in turn, each a list of deltas of the chat API.
async function scripted(replies) {
  const bodies = [];
  const server = createServer(async (request, response) => {
    if (request.method !== 'POST') return response.writeHead(404).end(); // the list of models, which is requested separately
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    bodies.push(Buffer.concat(chunks).toString());
    const deltas = replies[bodies.length - 1] ?? [{ content: 'The script has ended.' }];
    const finish = deltas.some((delta) => delta.tool_calls) ? 'tool_calls' : 'stop';
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const choices = [...deltas.map((delta) => ({ index: 0, delta, finish_reason: null })), { index: 0, delta: {}, finish_reason: finish }];
    for (const choice of choices) response.write(`data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', choices: [choice] })}\n\n`);
    response.end('data: [DONE]\n\n');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { url: `http://127.0.0.1:${server.address().port}/v1`, bodies, stop: () => server.close() };
}

const read = { index: 0, id: 'call_1', type: 'function', function: { name: 'read_file', arguments: '{"path":"main.rs"}' } };
const SCRIPT = [
  [{ content: 'Let me see. ' }, { tool_calls: [read] }],
  [{ content: 'It greets ' }, { content: 'the wörld.' }],
  [{ content: 'As I said: the wörld.' }],
  [{ content: 'Still the wörld.' }],
];

// Loads a session of `folder` and continues it; returns its ID and what was shown.
async function goOn(folder, settings, question) {
  const child = spawn(tandem, ['acp'], { stdio: ['pipe', 'pipe', 'inherit'], env: environment(path.join(folder, '.home'), settings) });
  const ended = once(child, 'exit');
  const shown = [];
  const app = acp.client({ name: 'peer' }).onNotification(client.session.update, ({ params }) => { shown.push(params.update); });
  const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  const id = await app.connectWith(stream, async (agentSide) => {
    await agentSide.request(agent.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} });
    const { sessions } = await agentSide.request(agent.session.list, { cwd: folder });
    assert.equal(sessions.length, 1);
    const [{ sessionId, title }] = sessions;
    assert.match(title, /What does this do\?/);
    await agentSide.request(agent.session.load, { sessionId, cwd: folder, mcpServers: [] });
    const { stopReason } = await agentSide.request(agent.session.prompt, { sessionId, prompt: [{ type: 'text', text: question }] });
    assert.equal(stopReason, 'end_turn');
    return sessionId;
  });
  child.stdin.end();
  assert.equal((await ended)[0], 0);
  return { id, shown };
}

const said = (shown, kind) => shown.filter((update) => update.sessionUpdate === kind).map((update) => update.content.text).join('');
// The messages of a request without their closing bracket, where the next request continues.
const history = (body) => body.slice(body.indexOf('"messages":['), -']}'.length);
const whole = (body) => body.slice(0, -']}'.length);

await test('a conversation begun in Neovim goes on over ACP and without an editor, its history the same bytes', () => withFolder(async (folder) => {
  const model = await scripted(SCRIPT);
  const settings = { TANDEM_BASE_URL: model.url, TANDEM_MODEL: 'test', TANDEM_API: 'chat' };
  await mkdir(path.join(folder, '.git'));
  await writeFile(path.join(folder, 'main.rs'), 'fn main() {\n    println!("hello wörld 😀");\n}\n');

  const home = path.join(folder, '.home');
  await mkdir(home);
  const env = { ...environment(home, settings), TANDEM_BIN: tandem, XDG_CONFIG_HOME: home, XDG_STATE_HOME: home, XDG_DATA_HOME: home };
  const arguments_ = ['--headless', '-u', 'NONE', '-l', lua, path.join(folder, 'main.rs'), 'What does this do?'];
  const { stdout } = await promisify(execFile)(NVIM, arguments_, { cwd: folder, env, timeout: 60_000 });
  assert.match(stdout, /It greets the wörld\./);

  const { id, shown } = await goOn(folder, settings, 'Are you sure?');
  assert.match(said(shown, 'user_message_chunk'), /What does this do\?/);
  assert.equal(said(shown, 'agent_message_chunk'), 'Let me see. It greets the wörld.As I said: the wörld.');
  assert.ok(shown.some((update) => update.sessionUpdate === 'tool_call_update' && update.status === 'completed'));

  const last = await run(folder, settings, 'And now?', ['--session', id]);
  assert.equal(last.code, 0, last.stderr);
  assert.equal(last.text, 'Still the wörld.');

  assert.equal(model.bodies.length, SCRIPT.length);
  const [first, second, third, fourth] = model.bodies;
  assert.ok(second.startsWith(whole(first)), 'the two requests in Neovim');
  // Neovim has one more tool, `diagnostics`, which precedes the messages.
  assert.ok(history(third).startsWith(history(second)), 'Neovim, then ACP');
  assert.ok(fourth.startsWith(whole(third)), 'ACP, then without an editor');
  const roles = JSON.parse(fourth).messages.map((message) => message.role);
  assert.deepEqual(roles, ['system', 'user', 'assistant', 'tool', 'assistant', 'user', 'assistant', 'user']);
  model.stop();
}));

finish();
