// tandem with llama.cpp's real server and real models at temperature 0: what must hold in the protocol, whatever a model says. With `smoke`, only what a model
// of 93 MB shows within seconds.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { openSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { environment, finish, freePort, run, tandem, test, withFolder } from './harness.mjs';

const real = process.env.TANDEM_REAL;
if (!real) throw new Error('TANDEM_REAL (see get-real.sh) is needed');
const isSmoke = process.argv[2] === 'smoke';
const APIS = ['chat', 'responses', 'messages'];
// Your own server, for machines on which PyPI's cannot run.
const bin = path.join(real, 'bin');
const program = process.env.LLAMA_SERVER ?? path.join(bin, 'llama-server');
// How a successful turn may end.
const HONEST = ['end_turn', 'max_tokens', 'max_turn_requests', 'cancelled'];
const READ = 'Read note.txt with the tool read_file and tell me what it says.';

// What the servers log for each request: how many tokens they read and found cached, and how long that took.
const log = openSync(path.join(process.env.TANDEM_TEST_OUT ?? tmpdir(), 'llama-server.log'), 'w');

// Runs a server with this model file and these flags during `use`.
async function serving(model, flags, use, chosen) {
  const port = chosen ?? await freePort();
  // The smoke test runs beside other tests, where several threads would wait at each barrier for the one without a core.
  const threads = String(isSmoke ? 1 : availableParallelism());
  const server = spawn(program, [
    '--model', path.join(real, model), '--port', port, '--parallel', '1', '--device', 'none',
    '--threads', threads, '--threads-batch', threads, ...flags,
  ], { env: { PATH: '/usr/bin:/bin', HOME: '/nonexistent', LD_LIBRARY_PATH: bin }, stdio: ['ignore', log, log] });
  const ended = new Promise((resolve) => server.on('close', resolve));
  const url = `http://127.0.0.1:${port}`;
  try {
    while (!await fetch(`${url}/health`).then((answer) => answer.ok, () => false)) {
      // PyPI's build is compiled for newer CPUs than some machines have, and no CPU flag says which.
      if (server.signalCode === 'SIGILL') {
        console.log('skipped real models: llama-server uses instructions that this CPU does not have');
        finish();
      }
      assert.equal(server.exitCode ?? server.signalCode, null, 'llama-server ended while it started');
      await pause(100);
    }
    await use({ url, slot: async () => (await (await fetch(`${url}/slots`)).json())[0] });
    assert.equal(server.exitCode ?? server.signalCode, null, 'llama-server crashed');
  } finally {
    server.kill();
    await ended;
  }
}

// A project with a configured model at this server.
const project = (url, more, use) => withFolder(async (folder) => {
  const home = path.join(folder, '.home');
  await mkdir(home);
  await writeFile(path.join(folder, 'note.txt'), 'the note says hello\n');
  await writeFile(path.join(home, 'config.toml'), `model = "llamacpp/local"
[providers.llamacpp]
base-url = "${url}/v1"
[providers.llamacpp.body]
temperature = 0
[providers.llamacpp.models.local]
max-tokens = 300
${more}`);
  return use(folder);
});

const notices = (heard) => heard.of('notice').map(({ message }) => message).join('\n');

// A turn that ended normally, with exactly one result for every call.
function honest(heard) {
  assert.equal(heard.done?.type, 'done', heard.stderr + JSON.stringify(heard.done));
  assert.ok(HONEST.includes(heard.done.termination_reason), JSON.stringify(heard.events.slice(-3)));
  const ids = (type, id) => heard.of(type).map(id).sort();
  assert.deepEqual(ids('tool_execution_end', (end) => end.call_id), ids('tool_call_complete', ({ call }) => call.id));
}

// Two prompts: the second one's request begins with what the server has already processed.
async function remembers(folder, settings) {
  const first = await run(folder, settings, 'What is two and two?');
  honest(first);
  const second = await run(folder, settings, 'And three and three?', ['--continue']);
  honest(second);
  const { input, cached } = second.of('usage')[0];
  assert.ok(cached >= 0.9 * input, `${cached} of ${input} tokens were cached`);
}

// How many milliseconds the slot stays busy after `cancel`.
async function freed(server, cancel) {
  assert.ok((await server.slot()).is_processing, 'the model answers');
  cancel();
  const began = performance.now();
  while ((await server.slot()).is_processing) await pause(2);
  return performance.now() - began;
}

const COUNT = 'Count from 1 to 500, a number on each line.';

// The same for a client that only closes its connection: the time the server itself needs, on this machine and now.
async function closed(server) {
  const abort = new AbortController();
  const body = JSON.stringify({ stream: true, messages: [{ role: 'user', content: COUNT }] });
  const answer = await fetch(`${server.url}/v1/chat/completions`, { method: 'POST', body, signal: abort.signal });
  await answer.body.getReader().read();
  return freed(server, () => abort.abort());
}

// The same for a turn that is cancelled in the middle of its answer.
async function cancelled(folder, server) {
  const child = spawn(tandem, ['run', '--json', '-C', folder, COUNT], {
    env: environment(path.join(folder, '.home'), {}), stdio: ['ignore', 'pipe', 'ignore'],
  });
  const ended = new Promise((resolve) => child.on('close', resolve));
  for await (const chunk of child.stdout) if (chunk.includes('"text_delta"')) break;
  const took = await freed(server, () => child.kill('SIGINT'));
  await ended;
  return took;
}

// Runs an editor with `tandem lsp` in this folder during `use`: requests and notifications.
async function editing(folder, use) {
  const child = spawn(tandem, ['lsp'], { cwd: folder, env: environment(path.join(folder, '.home'), {}), stdio: ['pipe', 'pipe', 'ignore'] });
  const ended = new Promise((resolve) => child.on('close', resolve));
  const answers = new Map();
  const send = (message) => {
    const body = JSON.stringify({ jsonrpc: '2.0', ...message });
    child.stdin.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  };
  const receive = (message) => {
    if (message.method === undefined) answers.get(message.id)?.(message);
    else if (message.id !== undefined) send({ id: message.id, result: null });
  };
  let bytes = Buffer.alloc(0);
  child.stdout.on('data', (chunk) => {
    bytes = Buffer.concat([bytes, chunk]);
    for (;;) {
      const end = bytes.indexOf('\r\n\r\n');
      const length = Number(/Content-Length: (\d+)/.exec(bytes.subarray(0, Math.max(end, 0)))?.[1]);
      if (end < 0 || bytes.length < end + 4 + length) return;
      receive(JSON.parse(bytes.subarray(end + 4, end + 4 + length)));
      bytes = bytes.subarray(end + 4 + length);
    }
  });
  const editor = {
    uri: (name) => `file://${path.join(folder, name)}`,
    notify: (method, params) => send({ method, params }),
    request: (method, params) => new Promise((resolve) => {
      answers.set(answers.size + 1, ({ result, error }) => resolve(result ?? { error }));
      send({ id: answers.size, method, params });
    }),
  };
  await editor.request('initialize', {
    processId: null, rootUri: editor.uri(''),
    capabilities: { textDocument: { inlineCompletion: {} }, experimental: { tandem: {} } },
  });
  editor.notify('initialized', {});
  try {
    return await use(editor);
  } finally {
    child.stdin.end();
    await ended;
  }
}

// The first inline completion of a document.
const completed = (folder, text, position) => editing(folder, async (editor) => {
  const textDocument = { uri: editor.uri('add.py') };
  editor.notify('textDocument/didOpen', { textDocument: { ...textDocument, languageId: 'python', version: 1, text } });
  return editor.request('textDocument/inlineCompletion', { textDocument, position, context: { triggerKind: 1 } });
});

// The milliseconds from the prompt to the first token of its answer (of a word or of a call), in a session whose person
// typed for this long (0: did not type; Infinity: until the server was done).
const firstWord = (url, slot, typed) => project(url, '', (folder) => editing(folder, async (editor) => {
  const { sessionId } = await editor.request('session/new', { cwd: folder, mcpServers: [] });
  if (typed > 0) {
    editor.notify('_tandem/didStartTyping', { sessionId });
    const until = performance.now() + typed;
    while (!(await slot()).is_processing) await pause(5);
    while ((await slot()).is_processing && performance.now() < until) await pause(5);
  }
  const before = (await slot()).id_task;
  const began = performance.now();
  const answer = editor.request('session/prompt', { sessionId, prompt: [{ type: 'text', text: 'What is two and two?' }] });
  for (;;) {
    const now = await slot();
    if (now.id_task !== before && now.next_token[0].n_decoded > 0) break;
    await pause(5);
  }
  const took = performance.now() - began;
  editor.notify('session/cancel', { sessionId });
  await answer;
  return took;
}));

// --- SmolLM2-135M: fast, and its template has no tools

await serving('smol.gguf', ['--ctx-size', '8192'], async (server) => {
  for (const api of APIS) {
    await test(`smol, ${api}: the second request finds the first one's prefix evaluated`, () =>
      project(server.url, '', (folder) => remembers(folder, { TANDEM_API: api })));
  }
  await test('smol: a cancelled turn frees its slot within 100 ms of what the server needs', () => project(server.url, '', async (folder) => {
    const [times, own] = [[], []];
    for (let play = 0; play < 5; play += 1) {
      own.push(await closed(server));
      times.push(await cancelled(folder, server));
    }
    const written = (list) => list.map((time) => time.toFixed(0)).join(', ');
    console.log(`  freed after ${written(times)} ms; after a closed connection alone: ${written(own)} ms`);
    const median = (list) => list.toSorted((one, other) => one - other)[2];
    assert.ok(median(times) <= median(own) + 100, `${times} ms`);
  }));
});

for (const [window, what] of [['4096', 'an answer or a clear word'], ['2048', 'a clear word']]) {
  await serving('smol.gguf', ['--ctx-size', window], async ({ url }) => {
    await test(`smol, window ${window}: ${what}`, () => project(url, '', async (folder) => {
      const lines = Array.from({ length: 3000 }, (_, line) => `line ${line}: ${'abc '.repeat(line % 7)}`).join('\n');
      await writeFile(path.join(folder, 'long.txt'), lines);
      const heard = await run(folder, {}, `Explain @long.txt\n${'Please be thorough. '.repeat(100)}`);
      assert.equal(heard.done?.type, 'done', heard.stderr);
      if (heard.code === 0) honest(heard);
      assert.ok(heard.code === 0 || /window/.test(heard.of('error').at(-1)?.message), JSON.stringify(heard.events.slice(-3)));
      assert.match(notices(heard), /context window of only/);
      console.log(`  ${heard.done.termination_reason}, ${heard.done.iterations} requests: ${heard.of('error').at(-1)?.message ?? 'answered'}`);
    }));
  });
}

if (isSmoke) finish();

for (const model of ['smol', 'qwen']) {
  await test(`${model}: the first word comes at least twice as soon after typing`, async () => {
    const times = [];
    for (const typed of [0, 2000, Infinity]) {
      // A new server, which has processed nothing yet.
      await serving(`${model}.gguf`, ['--ctx-size', '8192'], async ({ url, slot }) => { times.push(await firstWord(url, slot, typed)); });
    }
    const [cold, interrupted, warm] = times.map(Math.round);
    console.log(`  first token after ${cold} ms; ${interrupted} ms after 2 s of typing, ${warm} ms after enough of it`);
    assert.ok(warm * 2 <= cold, `${warm} ms, and ${cold} ms without typing`);
  });
}

await serving('smol.gguf', ['--ctx-size', '4096'], async ({ url }) => {
  await test('smol, window 4096: a conversation goes on when it is full', () => project(url, '', async (folder) => {
    let compactions = 0;
    for (let turn = 0; turn < 8; turn += 1) {
      const words = Array.from({ length: 400 }, (_, word) => `word${turn * 1000 + word}`).join(' ');
      const heard = await run(folder, {}, `Say yes. Ignore these: ${words}`, turn > 0 ? ['--continue'] : []);
      honest(heard);
      compactions += heard.of('compaction').length;
    }
    assert.ok(compactions > 0, 'the window was never full');
  }));
});

// The address at which tandem looks for llama.cpp has to be free.
await serving('smol.gguf', ['--ctx-size', '4096'], () => test('smol: a server is found without configuration, and its small window is told', () => (
  withFolder(async (folder) => {
    await mkdir(path.join(folder, '.home'));
    const heard = await run(folder, { TANDEM_MODEL: undefined, TANDEM_API_KEY: undefined }, 'What is two and two?');
    honest(heard);
    assert.match(heard.of('turn_start')[0].model, /^llamacpp\//);
    assert.equal(heard.of('turn_start')[0].context_window, 4096);
    assert.match(notices(heard), /context window of only 4096/);
  }))), '8080');

// --- Qwen2.5-Coder-1.5B: calls tools, with the template in its file and with Qwen3-Coder's

for (const [template, flags, apis] of [
  ['its own template', [], APIS],
  ["Qwen3-Coder's template", ['--chat-template-file', path.join(real, 'qwen3-coder.jinja')], ['chat']],
]) {
  await serving('qwen.gguf', ['--ctx-size', '8192', ...flags], async (server) => {
    for (const api of apis) {
      await test(`qwen with ${template}, ${api}: a file is read, from an evaluated prefix`, () => project(server.url, '', async (folder) => {
        const heard = await run(folder, { TANDEM_API: api }, READ);
        honest(heard);
        const [read] = heard.of('tool_execution_end').filter(({ name }) => name === 'read_file');
        assert.equal(read?.result.is_error, false, JSON.stringify(heard.events.slice(-5)));
        assert.match(read.result.content, /the note says hello/);
        const { input, cached } = heard.of('usage')[1];
        assert.ok(cached >= 0.9 * input, `${cached} of ${input} tokens were cached`);
      }));
    }
  });
}

await serving('qwen.gguf', ['--ctx-size', '4096'], async ({ url }) => {
  await test('qwen: inline completion answers from the text on both sides', () => project(url, '[completion]\nmodel = "llamacpp/local"\n', async (folder) => {
    const text = 'def add(a, b):\n    return \n\n\nprint(add(1, 2))\n';
    const answer = await completed(folder, text, { line: 1, character: 11 });
    const [item] = answer.items ?? answer;
    assert.ok(item?.insertText.trim(), JSON.stringify(answer));
    console.log(`  suggested: ${JSON.stringify(item.insertText)}`);
  }));
});

finish();
