/** The programs of the network: those of the machine, or those of Debian's packages, unpacked below the data folder
 *  without installation. That needs no rights, starts no service and does not change the machine. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { isRunByRootSafely } from '../../kit/sys/own-files.ts'
import { environment } from '../../kit/sys/process.ts'
import { isDebian, type Packages } from '../packages.ts'

const run = promisify(execFile)

const PROGRAMS: Packages = {
  'ovs-vswitchd': 'openvswitch-switch',
  'ovs-vsctl': 'openvswitch-common',
  'ovs-ofctl': 'openvswitch-common',
  'ovsdb-tool': 'openvswitch-common',
  'ovsdb-server': 'openvswitch-common',
  'ovsdb-client': 'openvswitch-common',
  'ovn-northd': 'ovn-central',
  'ovn-controller': 'ovn-host',
  ip: 'iproute2',
  ethtool: 'ethtool',
  nft: 'nftables',
  slirp4netns: 'slirp4netns',
}
/** Packages that other packages' programs need. */
const BESIDES = ['ovn-common']
const SCHEMAS: Packages = {
  'ovn/ovn-nb.ovsschema': 'ovn-central',
  'ovn/ovn-sb.ovsschema': 'ovn-central',
  'openvswitch/vswitch.ovsschema': 'openvswitch-switch',
}

/** Locations of programs and schemas. */
export interface Programs {
  /** Value of PATH. */
  readonly path: string
  /** Folders like /usr/share; the first that has a file is used. */
  readonly shared: readonly string[]
}

const SYSTEM_FOLDERS = ['/usr/local/sbin', '/usr/sbin', '/sbin', '/usr/bin', '/bin']
const SYSTEM_SHARED = '/usr/share'
const DOWNLOAD_MILLISECONDS = 180_000
/** Timeout for a mirror. */
const MIRROR_SECONDS = 5

/** Path of a schema for OVSDB's tools, such as `ovn/ovn-nb.ovsschema`. */
export const schemaFile = (shared: readonly string[], name: string): string =>
  join(shared.find((folder) => existsSync(join(folder, name))) ?? SYSTEM_SHARED, name)

/** Programs of the machine; the path of an ordinary user lacks some of their folders. */
function systemPath(): string {
  const folders = (environment()['PATH'] ?? '').split(':').filter((folder) => folder !== '')
  return [...folders, ...SYSTEM_FOLDERS.filter((folder) => !folders.includes(folder))].join(':')
}

const programsOfMachine = (): Programs => ({ path: systemPath(), shared: [SYSTEM_SHARED] })

/** Downloaded programs in the folder, before those of the machine. */
const programsIn = (folder: string, { path, shared }: Programs): Programs =>
  existsSync(join(folder, 'bin'))
    ? { path: `${join(folder, 'bin')}:${path}`, shared: [join(folder, 'root', SYSTEM_SHARED), ...shared] }
    : { path, shared }

/** Packages of missing programs. */
function missingOf({ path, shared }: Programs): readonly string[] {
  const folders = path.split(':')
  const programs = Object.entries(PROGRAMS).filter(
    ([program]) => !folders.some((folder) => existsSync(join(folder, program))),
  )
  const schemas = Object.entries(SCHEMAS).filter(([name]) => !shared.some((folder) => existsSync(join(folder, name))))
  return [...new Set([...programs, ...schemas].map(([, name]) => name))]
}

export interface ProgramNeeds {
  /** Folder for downloads. */
  readonly folder: string
  readonly mayInstall: boolean
  /** The machine's programs; searched when absent. */
  readonly machine?: Programs
  /** Prints one line for people. */
  readonly print: (line: string) => void
}

/** The programs, or why they are unavailable. */
export async function findPrograms(needs: ProgramNeeds): Promise<Programs | string> {
  const { folder, mayInstall, print, machine = programsOfMachine() } = needs
  // Files that somebody else may have written are downloaded again, not run.
  const isOurs = await isRunByRootSafely(folder).catch(() => false)
  if (isOurs && existsSync(join(folder, 'bin'))) await writeWrappers(folder)
  const found = isOurs ? programsIn(folder, machine) : machine
  if (missingOf(found).length === 0) return found
  const missing = missingOf(machine)
  const advice = `install them with apt-get install --no-install-recommends ${missing.join(' ')}`
  if (!mayInstall) return `programs are missing, and --no-install forbids to download them: ${advice}`
  if (!(await isDebian())) return `programs are missing: Open vSwitch, ${Object.keys(PROGRAMS).join(', ')}`
  print(`Downloading ${missing.join(' ')} (leave that out with --no-install) ...`)
  try {
    await downloadPrograms([...new Set([...missing, ...BESIDES])], folder)
  } catch (error) {
    return `programs are missing and cannot be downloaded (${lastLineOf(error)}): ${advice}`
  }
  const programs = programsIn(folder, machine)
  const stillMissing = missingOf(programs)
  return stillMissing.length === 0 ? programs : `programs are missing: ${advice}`
}

/** The last line of output of a failed program. */
export function lastLineOf(error: unknown): string {
  const lastLine =
    error instanceof Error && 'stderr' in error ? String(error.stderr).trim().split('\n').at(-1) : undefined
  return lastLine === undefined || lastLine === '' ? (error instanceof Error ? error.message : String(error)) : lastLine
}

/** Completely or not at all: the folder has `bin` when everything is there. */
async function downloadPrograms(packages: readonly string[], folder: string): Promise<void> {
  const work = `${folder}.new`
  await rm(work, { recursive: true, force: true })
  for (const part of ['debs', 'root', 'bin', 'state', 'lists/partial', 'cache/archives/partial'])
    await mkdir(join(work, part), { recursive: true })
  const own = [`Dir::State=${join(work, 'state')}`, `Dir::Cache=${join(work, 'cache')}`]
  const ownLists = [...own, `Dir::State::Lists=${join(work, 'lists')}`]
  try {
    await download(packages, [...own, 'Dir::State::Lists=/var/lib/apt/lists'], work).catch(async () => {
      // The package lists are missing or old, so this uses separate lists.
      await apt(['update'], ownLists, work)
      await download(packages, ownLists, work)
    })
    for (const file of (await readdir(join(work, 'debs'))).filter((name) => name.endsWith('.deb')).sort())
      await run('dpkg-deb', ['-x', join(work, 'debs', file), join(work, 'root')])
    await writeWrappers(work)
    for (const part of ['debs', 'state', 'lists', 'cache']) await rm(join(work, part), { recursive: true, force: true })
    await rm(folder, { recursive: true, force: true })
    await rename(work, folder)
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

/** Downloads the packages, and the libraries that they need and the machine lacks. */
async function download(packages: readonly string[], settings: readonly string[], work: string): Promise<void> {
  const uris = await apt(['--print-uris', '--no-install-recommends', 'install', ...packages], settings, work)
  // Lines like: 'http://…/libxdp1_1.3.1-1_amd64.deb' libxdp1_1.3.1-1_amd64.deb 55144 SHA256:…
  const needed = [...uris.matchAll(/^'\S+' ([^_\s]+)_\S+\.deb /gm)].map(([, name = '']) => name)
  const libraries = needed.filter((name) => /^lib(?!python)/.test(name))
  await apt(['download', ...new Set([...packages, ...libraries])], settings, join(work, 'debs'))
}

async function apt(words: readonly string[], settings: readonly string[], folder: string): Promise<string> {
  const all = [
    ...settings,
    'Dir::State::status=/var/lib/dpkg/status',
    'APT::Sandbox::User=',
    'Debug::NoLocking=true',
    'Acquire::Retries=1',
    `Acquire::http::Timeout=${MIRROR_SECONDS}`,
    `Acquire::https::Timeout=${MIRROR_SECONDS}`,
    'APT::Update::Error-Mode=any',
  ]
  const { stdout } = await run('apt-get', ['-qq', ...all.flatMap((setting) => ['-o', setting]), ...words], {
    cwd: folder,
    timeout: DOWNLOAD_MILLISECONDS,
    env: { ...environment(), LC_ALL: 'C', DEBIAN_FRONTEND: 'noninteractive' },
  })
  return stdout
}

/** Debian creates this name when the package is installed. */
const BEHIND_ALTERNATIVES = 'usr/lib/openvswitch-switch/ovs-vswitchd'
const EXECUTABLE = 0o755

/** Only programs of the folder use its libraries. The wrappers contain no absolute path: a copied or moved folder runs
 *  its own files, and never files at the old location. */
async function writeWrappers(folder: string): Promise<void> {
  const root = join(folder, 'root')
  const inside = async (place: string) =>
    (await readdir(join(root, place)).catch(() => [])).map((name) => join(place, name))
  const libraries = [...(await inside('usr/lib')), ...(await inside('lib'))].filter((name) =>
    /-linux-gnu\w*$/.test(name),
  )
  const places = await Promise.all(['usr/bin', 'usr/sbin', 'bin', 'sbin'].map(inside))
  const programs = [...places.flat(), ...(existsSync(join(root, BEHIND_ALTERNATIVES)) ? [BEHIND_ALTERNATIVES] : [])]
  const search = libraries.map((name) => `$root/${name}`).join(':')
  for (const program of programs) {
    const file = join(folder, 'bin', program.split('/').at(-1) ?? '')
    // The kernel passes a script the path by which it was called.
    const script = `#!/bin/sh\nroot="$(cd "\${0%/*}/../root" && pwd)" || exit 126\n`
    const text = `${script}LD_LIBRARY_PATH="${search}" exec "$root/${program}" "$@"\n`
    if ((await readFile(file, 'utf8').catch(() => undefined)) === text) continue
    await writeFile(`${file}.new`, text)
    await chmod(`${file}.new`, EXECUTABLE)
    await rename(`${file}.new`, file)
  }
}
