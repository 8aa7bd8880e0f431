/** Programs of the machine that an embedded cloud needs, and their Debian packages. */
import { execFile, spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { environment, isRoot } from '../kit/sys/process.ts'

const run = promisify(execFile)

/** Packages by program. */
export type Packages = Readonly<Record<string, string>>

const isThere = (program: string): Promise<boolean> =>
  run('/bin/sh', ['-c', 'command -v "$1"', 'sh', program]).then(
    () => true,
    () => false,
  )

/** The packages of the programs that are not on the path. */
async function missingOf(packages: Packages): Promise<readonly string[]> {
  const missing: string[] = []
  for (const [program, name] of Object.entries(packages)) if (!(await isThere(program))) missing.push(name)
  return [...new Set(missing)]
}

export const adviceOf = (missing: readonly string[]): string =>
  `apt-get install --no-install-recommends ${missing.join(' ')}`

export const isDebian = async (): Promise<boolean> =>
  /^ID(_LIKE)?=.*\b(debian|ubuntu)\b/m.test(await readFile('/etc/os-release', 'utf8').catch(() => ''))

/** Runs apt-get and ignores its result: the caller checks afterwards whether the programs exist. */
function apt(flags: readonly string[]): Promise<void> {
  return new Promise((resolve) => {
    const child = spawn('apt-get', flags, {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...environment(), DEBIAN_FRONTEND: 'noninteractive' },
    })
    child.once('error', () => resolve())
    child.once('exit', () => resolve())
  })
}

export interface PackageNeeds {
  readonly mayInstall: boolean
  /** Prints one line for people. */
  readonly print: (line: string) => void
}

/** Installs missing packages if that is allowed; returns those that are still missing. */
export async function ensurePackages(
  packages: Packages,
  { mayInstall, print }: PackageNeeds,
): Promise<readonly string[]> {
  const missing = await missingOf(packages)
  if (missing.length === 0 || !mayInstall || !isRoot() || !(await isDebian())) return missing
  print(`Installing ${missing.join(' ')} (leave that out with --no-install) ...`)
  // The lists are updated first: a new machine has none, and old ones name packages that no longer exist.
  await apt(['update', '-q'])
  await apt(['install', '-y', '-q', '--no-install-recommends', ...missing])
  return missingOf(packages)
}
