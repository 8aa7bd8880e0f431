/** The databases of Open Virtual Network and the program that translates between them. They need no network: everything
 *  on the machine uses their sockets. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Daemon, type DaemonOptions, tied } from '../kit/daemon.ts'
import { schemaFile } from './programs.ts'

const run = promisify(execFile)

export interface Central {
  readonly northbound: string
  readonly southbound: string
}

/** Address of the database for the controllers, below the folder of the network. */
export const northboundOf = (folder: string): string => `unix:${join(folder, 'central', 'nb.sock')}`
export const southboundOf = (folder: string): string => `unix:${join(folder, 'central', 'sb.sock')}`

/** Creates a database with the installed schema, or converts an existing one. */
export async function prepareOvsdb(file: string, schema: string): Promise<void> {
  if (!existsSync(file)) return void (await run('ovsdb-tool', ['create', file, schema]))
  const { stdout } = await run('ovsdb-tool', ['needs-conversion', file, schema])
  if (stdout.trim() === 'yes') await run('ovsdb-tool', ['convert', file, schema])
}

const GLOBAL = { table: 'SB_Global' } as const
/** Creates the row that ovn-northd would create. It must exist before, because ovn-controller of OVN 23.03 crashes with
 *  SIGSEGV when a southbound database lacks it. */
export async function prepareSouthbound(file: string, schema: string): Promise<void> {
  await prepareOvsdb(file, schema)
  const whereNone = { ...GLOBAL, op: 'wait', where: [], columns: ['_uuid'], until: '==', rows: [], timeout: 0 }
  const insertion = ['OVN_Southbound', whereNone, { ...GLOBAL, op: 'insert', row: {} }]
  await run('ovsdb-tool', ['transact', file, JSON.stringify(insertion)])
}

/** Arguments that keep the files of a daemon in the folder, and send its log to that of this process. */
export const ownFiles = (folder: string, name: string): readonly string[] => [
  '--no-chdir',
  `--pidfile=${join(folder, `${name}.pid`)}`,
  '-vconsole:warn',
  // For ovn-controller only the environment sets this path; agents look for that of ovs-vswitchd there too.
  ...(['controller', 'ovs-vswitchd'].includes(name) ? [] : [`--unixctl=${join(folder, `${name}.ctl`)}`]),
]

export async function startCentral({
  folder,
  shared,
  launch,
}: {
  readonly folder: string
  /** Folders of schemas. */
  readonly shared: readonly string[]
  readonly launch: (options: DaemonOptions) => Daemon
}): Promise<Central> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const [north, south] = [`unix:${join(folder, 'nb.sock')}`, `unix:${join(folder, 'sb.sock')}`]
  const ofSchemas = [
    ['nb', 'ovn-nb', prepareOvsdb],
    ['sb', 'ovn-sb', prepareSouthbound],
  ] as const
  for (const [name, schema, prepare] of ofSchemas) {
    const file = join(folder, `${name}.db`)
    await prepare(file, schemaFile(shared, `ovn/${schema}.ovsschema`))
    launch({
      name: `ovsdb-${name}`,
      folder,
      command: tied([
        'ovsdb-server',
        ...ownFiles(folder, name),
        `--remote=punix:${join(folder, `${name}.sock`)}`,
        file,
      ]),
    })
  }
  launch({
    name: 'northd',
    folder,
    command: tied(['ovn-northd', ...ownFiles(folder, 'northd'), `--ovnnb-db=${north}`, `--ovnsb-db=${south}`]),
  })
  return { northbound: north, southbound: south }
}
