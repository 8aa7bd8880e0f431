/** Machines of databases on this host, with the real PostgreSQL, and what their owners see of them. */
import { access, mkdtemp, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { serverSettings, tlsServerName } from '../../../../domain/database/rules.ts'
import { defined } from '../../../../domain/defined.ts'
import { scramVerifier } from '../../../../domain/database/scram.ts'
import { probePort } from '../../../../embedded/kit/ports.ts'
import { makeCertificate } from '../../../../kit/sys/certificate.ts'
import { systemClock } from '../../../../kit/sys/clock.ts'
import { signalProcess } from '../../../../kit/sys/process.ts'
import { systemRandom } from '../../../../kit/sys/random.ts'
import type { MachineAnswer, MachineDocument } from '../../../../resources/managed-machine/index.ts'
import { until } from '../../../eventually.ts'
import { type MachineHere, openMachine } from './machine-script.ts'

type Section = NonNullable<MachineDocument['postgresql']>

const AUTHORITY = await makeCertificate({
  commonName: 'databases',
  days: 1,
  isAuthority: true,
  now: systemClock.now(),
  random: systemRandom,
})
const ID = 'd1'
/** To look all the time would slow down what is looked at. */
const LOOK_MILLISECONDS = 300
const SERVER = await makeCertificate({
  commonName: 'database',
  days: 1,
  hosts: [tlsServerName(ID), '127.0.0.1'],
  authority: AUTHORITY,
  now: systemClock.now(),
  random: systemRandom,
})

export interface DatabaseMachine extends MachineHere {
  readonly port: number
  /** Tells it what to run: what is said differently from what it runs. */
  tell(change?: Partial<Section>): Promise<MachineAnswer>
  /** What it says, after a while. */
  look(): Promise<MachineAnswer>
  /** A session of the owner, or of whoever is said. It ends with the machine at the latest. */
  connect(options?: Partial<pg.ClientConfig>): Promise<pg.Client>
  /** Ends the server's process as nobody wants it. */
  kill(): Promise<void>
  /** In a separate session; rows of the result. */
  query(text: string, values?: readonly unknown[]): Promise<readonly Record<string, unknown>[]>
}

export const passwordOf = (generation: number): string => `secret-${generation}`

export interface DatabaseMachineOptions {
  /** Folder of the data, which outlives the machine. */
  readonly data?: string
  /** Of the store of the archive, HOST:PORT. */
  readonly archive?: string
  /** Of its environment, instead of those that make tests short. */
  readonly settings?: Readonly<Record<string, string>>
}

const isThere = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )

export const newDataFolder = (): Promise<string> => mkdtemp(join(tmpdir(), 'database-'))

/** Runs nothing before its order. */
export async function openDatabaseMachine({
  data,
  archive,
  settings,
}: DatabaseMachineOptions = {}): Promise<DatabaseMachine> {
  const port = await probePort('127.0.0.1', 0)
  const machine = await openMachine({
    template: 'managed-database',
    settings: (folder) => ({
      MACHINE_DATA: data ?? join(folder, 'data'),
      MACHINE_POSTGRESQL_PORT: String(port),
      MACHINE_POINT_SECONDS: '2',
      MACHINE_KEEP_SECONDS: '0.6',
      MACHINE_STORE_SECONDS: '2',
      ...defined({ MACHINE_ARCHIVE: archive }),
      ...settings,
    }),
  })
  let generation = 0
  const sent = new Map<number, Section>()
  let section: Section = {
    diskSerial: 'disk',
    database: 'shop',
    owner: 'ada',
    passwordVerifier: scramVerifier(passwordOf(1), '1'),
    passwordGeneration: 1,
    certificate: SERVER.certificate,
    key: SERVER.key,
    networks: ['127.0.0.0/8'],
    settings: { ...serverSettings('db-1c-2g'), shared_buffers: '32MB' },
  }
  const clients: pg.Client[] = []
  const connect = async (options: Partial<pg.ClientConfig> = {}): Promise<pg.Client> => {
    const client = new pg.Client({
      host: '127.0.0.1',
      port,
      user: section.owner,
      password: passwordOf(section.passwordGeneration),
      database: section.database,
      ssl: { ca: AUTHORITY.certificate, servername: tlsServerName(ID) },
      connectionTimeoutMillis: 5_000,
      ...options,
    })
    client.on('error', () => {}) // a server that is killed
    await client.connect()
    clients.push(client)
    return client
  }
  return {
    ...machine,
    port,
    connect,
    async look() {
      await systemClock.sleep(LOOK_MILLISECONDS)
      return machine.ask('status')
    },
    async tell(change = {}) {
      generation += 1
      const postgresql = { ...section, ...change }
      const answer = await machine.apply({ machine: 'm1', generation, fingerprint: `f${generation}`, postgresql })
      sent.set(generation, postgresql)
      section = sent.get(answer.generation) ?? section
      return answer
    },
    async kill() {
      const file = join(machine.folder, 'run/svccloud/postgresql.service.pid')
      const pid = Number((await readFile(file, 'utf8')).split(' ')[0])
      signalProcess(pid, 'SIGKILL')
      // Until whoever has adopted it takes note of its end, the next server takes it for one that runs. In a guest
      // systemd starts that again each second.
      await until(
        'the end of the server',
        () => isThere(`/proc/${pid}`),
        (is) => !is,
      )
    },
    async query(text, values = []) {
      const client = await connect()
      try {
        return (await client.query(text, [...values])).rows
      } finally {
        await client.end()
      }
    },
    async close() {
      await Promise.all(clients.map((client) => client.end().catch(() => {})))
      await machine.close()
    },
  }
}

/** What a rotation sends. */
export const passwordChange = (generation: number): Partial<Section> => ({
  passwordVerifier: scramVerifier(passwordOf(generation), String(generation)),
  passwordGeneration: generation,
})
