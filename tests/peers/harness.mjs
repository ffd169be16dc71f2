// Shared by the peer tests: where the peers are, `tandem run --json` in a clean home, and counting.
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

export const peers = process.env.TANDEM_PEERS;
export const tandem = process.env.TANDEM_BIN;
if (!tandem) throw new Error('TANDEM_BIN is needed');

// load NAME: loads an npm package from the peers' folder.
export const load = async (name) => {
  if (!peers) throw new Error('TANDEM_PEERS (see get-peers.sh) is needed');
  return import(pathToFileURL(createRequire(path.join(peers, 'package.json')).resolve(name)));
};

// environment HOME SETTINGS: the environment of a tandem process, without anything from the user who runs the tests.
export const environment = (home, settings) => ({
  PATH: '/usr/bin:/bin',
  HOME: home,
  TANDEM_CONFIG: path.join(home, 'config.toml'),
  TANDEM_STATE_DIR: path.join(home, 'state'),
  ...settings,
});

// A temporary folder, removed afterwards.
export async function withFolder(use) {
  const folder = await mkdtemp(path.join(tmpdir(), 'tandem-peers-'));
  try {
    return await use(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

// run FOLDER SETTINGS PROMPT FLAGS: returns the events of one prompt and the exit code.
export async function run(folder, settings, prompt, flags = []) {
  const child = spawn(tandem, ['run', '--json', '-C', folder, ...flags, prompt], {
    env: environment(path.join(folder, '.home'), settings),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [stdout, stderr, code] = await Promise.all([
    collect(child.stdout), collect(child.stderr), new Promise((resolve) => child.on('close', resolve)),
  ]);
  const events = stdout.trim().split('\n').filter(Boolean).map((line) => JSON.parse(line));
  return {
    code, stderr, events,
    of: (type) => events.filter((event) => event.type === type),
    text: events.filter((event) => event.type === 'text_delta').map((event) => event.content).join(''),
    done: events.at(-1),
  };
}

async function collect(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

// A port that was free a moment ago, for peers that cannot choose one themselves.
export const freePort = () => new Promise((resolve) => {
  const server = createServer().listen(0, '127.0.0.1', () => {
    const { port } = server.address();
    server.close(() => resolve(port));
  });
});

// Counting, in the format that tests/run reads.
let passed = 0;
let failed = 0;
export async function test(name, body) {
  try {
    await body();
    passed += 1;
    console.log(`ok ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED ${name}: ${error.stack ?? error}`);
  }
}

export function finish() {
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed === 0 ? 0 : 1);
}
