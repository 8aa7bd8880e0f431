/** Sees to it that QEMU is there: installs it where that is allowed, and says loudly when guests will only be
 *  simulated. */
import { execFile, spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { environment, isRoot } from '../kit/sys/process.ts'
import { StartRefused } from './data-folder.ts'
import type { HypervisorChoice } from './options.ts'

const run = promisify(execFile)

/** The programs that running real guests takes, and Debian's packages of them. */
const PACKAGES: Readonly<Record<string, string>> = {
  'qemu-system-x86_64': 'qemu-system-x86',
  'qemu-img': 'qemu-utils',
}

const isThere = (program: string): Promise<boolean> =>
  run('/bin/sh', ['-c', 'command -v "$1"', 'sh', program]).then(
    () => true,
    () => false,
  )

/** The packages of the programs that are not on the path. */
async function missingPackages(): Promise<readonly string[]> {
  const missing: string[] = []
  for (const [program, name] of Object.entries(PACKAGES)) if (!(await isThere(program))) missing.push(name)
  return missing
}

const isDebian = async (): Promise<boolean> =>
  /^ID(_LIKE)?=.*\b(debian|ubuntu)\b/m.test(await readFile('/etc/os-release', 'utf8').catch(() => ''))

/** Runs apt-get to its end, however it ends: whether the programs are there is looked at afterwards. */
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

/** The lists are fetched first: a fresh machine has none, and old ones name packages that are gone. */
async function install(packages: readonly string[]): Promise<void> {
  await apt(['update', '-q'])
  await apt(['install', '-y', '-q', '--no-install-recommends', ...packages])
}

export interface HypervisorNeeds {
  readonly hypervisor: HypervisorChoice
  readonly mayInstall: boolean
  /** One line for people. */
  readonly print: (line: string) => void
}

/** Answers what the agents shall use: `auto` and `qemu` only when QEMU can run here. Throws StartRefused when QEMU was
 *  demanded and cannot. */
export async function ensureHypervisor({ hypervisor, mayInstall, print }: HypervisorNeeds): Promise<HypervisorChoice> {
  if (hypervisor === 'simulated') {
    print('WARNING: guests are simulated, as asked for. No virtual machine is started.')
    return hypervisor
  }
  let missing = await missingPackages()
  if (missing.length === 0) return hypervisor
  const advice = `apt-get install --no-install-recommends ${missing.join(' ')}`
  if (mayInstall && isRoot() && (await isDebian())) {
    print(`Installing ${missing.join(' ')} (leave that out with --no-install) ...`)
    await install(missing)
    missing = await missingPackages()
    if (missing.length === 0) return hypervisor
  }
  if (hypervisor === 'qemu')
    throw new StartRefused(`QEMU is needed and not complete. Install what is missing: ${advice}`)
  print(
    'WARNING: QEMU is not complete here, so guests are SIMULATED: no virtual machine is started. For real ones: ' +
      `${advice}`,
  )
  return 'simulated'
}
