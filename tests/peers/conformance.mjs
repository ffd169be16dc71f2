// MCP's own conformance suite (npm @modelcontextprotocol/conformance) against `tandem acp`, in both protocol versions.
//
// Without arguments, it runs the suite, which runs it again as the client under test: `conformance.mjs URL`. Then
// it is an editor with a scripted model that calls every tool of the server once; it allows every call, fills in every
// form with its defaults, and acts as the browser when a login asks for one.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { environment, finish, peers, tandem, test, withFolder } from './harness.mjs';

// The client requirements of each revision.
const REQUIRED = { '2025-11-25': 18, '2026-07-28': 32 };
// Run but not scored: extensions, and features added after the revision.
const NOT_SCORED = /\((extension|added-after-release)\)/;

const client = process.argv[2];
if (client) process.exit(await play(client) ? 0 : 1);

for (const [revision, required] of Object.entries(REQUIRED)) {
  await test(`MCP conformance ${revision}: ${required} of ${required} scenarios`, () => withFolder(async (folder) => {
    const suite = path.join(peers, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
    const command = `${process.execPath} ${path.resolve(process.argv[1])}`;
    const output = await run(process.execPath, [
      suite, 'client', '--command', command, '--requirements', revision, '-o', folder, '--timeout', '60000',
    ]);
    const summary = output.slice(output.indexOf('=== SUITE SUMMARY ==='));
    const optional = new Set(summary.split('\n').filter((line) => NOT_SCORED.test(line)).map((line) => line.trim().split(' ')[1]));
    const results = [...summary.matchAll(/^([✓✗]) ([^:\s]+): (.*)$/gm)].filter(([, , name]) => !optional.has(name));
    const failed = results.filter(([, mark]) => mark !== '✓').map(([line]) => line);
    assert.deepEqual(failed, [], output.slice(-4000));
    assert.equal(results.length, required, summary);
  }));
}
finish();

async function run(program, args) {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece) => { output += piece; });
  await new Promise((resolve) => child.on('close', resolve));
  return output;
}

// play URL: sends one prompt in which the model calls the server's tools; returns whether it was answered.
async function play(url) {
  const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT || '{}');
  const model = await serveModel(context.toolCalls ?? []);
  const folder = await mkdtemp(path.join(tmpdir(), 'tandem-conformance-'));
  try {
    const home = path.join(folder, 'home');
    const work = path.join(folder, 'work');
    await mkdir(home);
    await mkdir(work);
    // The suite runs all scenarios in parallel. The scenario decides whether a login uses a preregistered client ID or the address of a metadata document.
    const id = process.env.MCP_CONFORMANCE_SCENARIO === 'auth/basic-cimd'
      ? 'https://conformance-test.local/client-metadata.json' : context.client_id;
    const server = Object.entries({ url, 'client-id': id, 'client-secret': context.client_secret })
      .filter(([, value]) => value).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
    await writeFile(path.join(home, 'config.toml'), `[limits]\nconnect-timeout = 60\n[mcp.conf]\n${server.join('\n')}\n`);
    const settings = {
      TANDEM_BASE_URL: `http://127.0.0.1:${model.address().port}/v1`, TANDEM_MODEL: 'm', TANDEM_API_KEY: 'k', TANDEM_API: 'chat',
    };
    const agent = spawn(tandem, ['acp'], { cwd: work, env: environment(home, settings), stdio: ['pipe', 'pipe', 'inherit'] });
    const answer = await converse(agent, work);
    agent.stdin.end();
    await new Promise((resolve) => agent.on('close', resolve));
    return 'result' in answer;
  } finally {
    model.close();
    await rm(folder, { recursive: true, force: true });
  }
}

// converse AGENT FOLDER: returns the answer to a prompt.
async function converse(agent, cwd) {
  const send = (message) => agent.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const lines = createInterface({ input: agent.stdout })[Symbol.asyncIterator]();
  const answer = async (id, method, params) => {
    send({ id, method, params });
    for (;;) {
      const { value: line, done } = await lines.next();
      if (done) throw new Error(`tandem ended before it answered ${method}`);
      console.log(line.slice(0, 2000));
      const message = JSON.parse(line);
      if (message.id === id && !message.method) return message;
      if (message.method && message.id !== undefined) send({ id: message.id, result: decide(message) });
    }
  };
  await answer(1, 'initialize', { protocolVersion: 1, clientCapabilities: { elicitation: { form: {}, url: {} } } });
  const { result: { sessionId } } = await answer(2, 'session/new', { cwd, mcpServers: [] });
  return answer(3, 'session/prompt', { sessionId, prompt: [{ type: 'text', text: 'Call the tools.' }] });
}

// The person, who allows everything.
function decide({ method, params }) {
  if (method === 'session/request_permission') {
    const { optionId } = params.options.find(({ kind }) => kind === 'allow_once');
    return { outcome: { outcome: 'selected', optionId } };
  }
  assert.equal(method, 'elicitation/create');
  if (params.mode === 'url') fetch(params.url).catch((error) => console.error(`the browser: ${error}`));
  return { action: 'accept', content: {} };
}

// A model that calls every tool it is offered, then ends its turn.
function serveModel(scripted) {
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const piece of request) body += piece;
    if (request.method === 'GET') return response.end(JSON.stringify({ object: 'list', data: [{ id: 'm', object: 'model' }] }));
    const { messages, tools = [] } = JSON.parse(body);
    const calls = messages.some(({ role }) => role === 'tool') ? [] : tools.flatMap(({ function: tool }) => callsOf(tool, scripted));
    const chunk = (delta, reason) => `data: ${JSON.stringify({
      id: 'x', object: 'chat.completion.chunk', model: 'm', choices: [{ index: 0, delta, finish_reason: reason }],
    })}\n\n`;
    const delta = calls.length
      ? { role: 'assistant', tool_calls: calls.map((call, index) => ({ index, id: `call_${index}`, type: 'function', function: call })) }
      : { role: 'assistant', content: 'Called.' };
    response.setHeader('content-type', 'text/event-stream');
    return response.end(`${chunk(delta, null)}${chunk({}, calls.length ? 'tool_calls' : 'stop')}data: [DONE]\n\n`);
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

function callsOf({ name, parameters = {} }, scripted) {
  const tool = name.match(/^conf__(.*)$/)?.[1];
  if (!tool) return [];
  const given = scripted.filter((call) => call.name === tool).map((call) => call.arguments ?? {});
  const sampled = Object.entries(parameters.properties ?? {}).map(([key, schema]) => [key, sample(schema)]);
  return (given.length ? given : [Object.fromEntries(sampled)])
    .map((values) => ({ name, arguments: JSON.stringify(values) }));
}

function sample(schema) {
  if ('const' in schema) return schema.const;
  if (schema.enum) return schema.enum[0];
  if ('default' in schema) return schema.default;
  return { number: 2, integer: 42, boolean: true, array: [], object: {}, null: null }[[schema.type].flat()[0]] ?? 'us-west1';
}
