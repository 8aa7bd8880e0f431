/** The northbound and the southbound database of OVN without any host: one server has both, and dies on request. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { connectOvsdb, type OvsdbConnection, type OvsdbResult } from '../../../../controllers/network/ovn/ovsdb.ts'
import { systemClock as clock } from '../../../../kit/sys/clock.ts'
import { until } from '../../../eventually.ts'

const execute = promisify(execFile)

export interface OvnDatabases {
  readonly remote: string
  /** All rows of a table of the northbound database. */
  rowsOf(table: string): Promise<NonNullable<OvsdbResult['rows']>>
  northbound(): OvsdbConnection
  southbound(operation: Readonly<Record<string, unknown>>): Promise<unknown>
  /** Kills the server and starts it again. */
  restart(): Promise<void>
  close(): Promise<void>
}

export async function openOvnDatabases(): Promise<OvnDatabases> {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-nb-'))
  const remote = `unix:${join(folder, 'db.sock')}`
  const files = ['nb', 'sb'].map((name) => join(folder, `${name}.db`))
  for (const name of ['nb', 'sb'])
    await execute('ovsdb-tool', ['create', join(folder, `${name}.db`), `/usr/share/ovn/ovn-${name}.ovsschema`])
  let server: ChildProcess
  let connection: OvsdbConnection
  const start = async () => {
    server = spawn('ovsdb-server', [`--remote=p${remote}`, `--unixctl=${join(folder, 'db.ctl')}`, ...files], {
      env: { ...process.env, OVS_RUNDIR: folder, OVN_RUNDIR: folder, OVS_DBDIR: folder },
      stdio: 'ignore',
    })
    await until(
      'the databases to be there',
      async () => {
        connection = connectOvsdb(remote, { clock })
        return connection.call('list_dbs', []).catch(() => connection.close())
      },
      (names) => Array.isArray(names) && names.includes('OVN_Northbound'),
    )
  }
  const stop = async () => {
    connection.close()
    const ended = new Promise((resolve) => server.once('exit', resolve))
    server.kill('SIGKILL')
    await ended
  }
  await start()
  return {
    remote,
    northbound: () => connection,
    rowsOf: async (table) =>
      (await connection.transact('OVN_Northbound', [{ op: 'select', table, where: [] }]))[0]?.rows ?? [],
    southbound: (operation) => connection.transact('OVN_Southbound', [operation]),
    async restart() {
      await stop()
      await start()
    },
    async close() {
      await stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
