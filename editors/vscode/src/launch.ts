/** How the server process is found and what it is started with. Depends on nothing of the machine except the clone, so that all platforms are tested on one. */
import { existsSync } from "node:fs";
import { join, posix, win32 } from "node:path";
import { l10n } from "vscode";

/** Set by esbuild.mjs; empty in a release. */
declare const CLONE: string;

/** Where the program can be built; empty if it cannot. */
export function cloneToBuild(): string {
  return CLONE !== "" && existsSync(join(CLONE, "Cargo.toml")) ? CLONE : "";
}

export interface Settings {
  readonly serverPath: string;
  readonly model: string;
  readonly baseUrl: string;
  readonly api: string;
  readonly mode: string;
  /** The model that completes what is typed. */
  readonly completion: string;
  /** Rules for calls that run without asking, require approval, or never run. */
  readonly permissions: Readonly<Record<"allow" | "ask" | "deny", readonly string[]>>;
  /** Whether changes are checked at the end of a turn. */
  readonly finish: boolean;
}

export interface Host {
  readonly platform: NodeJS.Platform;
  readonly home: string;
  /** The folder of the bundled executable; the universal package has none. */
  readonly own: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly isFile: (path: string) => boolean;
  /** The clone in which the extension was built; empty for a release. */
  readonly clone?: string;
}

export type Found = { readonly program: string } | { readonly problem: string; readonly isMissing?: boolean };

/** The executable to run: the configured one, else the one bundled with the extension, else an installed one. */
export function findServer(setting: string, host: Host): Found {
  return setting.trim() === "" ? onPath(host) : atSetting(setting.trim(), host);
}

function atSetting(setting: string, host: Host): Found {
  const { isAbsolute, join } = host.platform === "win32" ? win32 : posix;
  const program = /^~[/\\]/.test(setting) ? join(host.home, setting.slice(2)) : setting;
  if (!isAbsolute(program)) {
    return {
      problem: l10n.t(
        'The setting tandem.server.path is "{0}", which is not an absolute path. Use an absolute path, or leave it empty to use PATH.',
        setting,
      ),
    };
  }
  return host.isFile(program)
    ? { program }
    : {
        problem: l10n.t(
          'The setting tandem.server.path names "{0}", which is not a file. Correct it, or leave it empty to use PATH.',
          program,
        ),
      };
}

/** Including where Cargo installs programs, which is not on the PATH of every editor. */
function onPath({ platform, home, env, own, isFile, clone = "" }: Host): Found {
  const windows = platform === "win32";
  const { isAbsolute, join, delimiter } = windows ? win32 : posix;
  const folders = (env["PATH"] ?? env["Path"] ?? "").split(delimiter).filter((folder) => isAbsolute(folder));
  const built = clone === "" ? [] : [join(clone, "target/release")];
  const program = [own, ...folders, join(home, ".cargo/bin"), ...built]
    .map((folder) => join(folder, windows ? "tandem.exe" : "tandem"))
    .find(isFile);
  return program === undefined
    ? {
        problem: l10n.t(
          "The tandem executable was not found on PATH or in ~/.cargo/bin. Install it, or set tandem.server.path to where it is.",
        ),
        isMissing: true,
      }
    : { program };
}

/** The server's environment: the editor's own, and what the settings and the secret store add to it. */
export function environment(
  settings: Pick<Settings, "model" | "baseUrl" | "api">,
  apiKey: string | undefined,
  env: Host["env"],
): Record<string, string> {
  const own = {
    TANDEM_MODEL: settings.model,
    TANDEM_BASE_URL: settings.baseUrl,
    TANDEM_API: settings.baseUrl === "" ? "" : settings.api,
    TANDEM_API_KEY: apiKey ?? "",
  };
  const all = { ...env, ...Object.fromEntries(Object.entries(own).filter(([, value]) => value !== "")) };
  return Object.fromEntries(Object.entries(all).filter((pair): pair is [string, string] => pair[1] !== undefined));
}
