/** pgbench in a managed database, with its archive, against the same PostgreSQL started by hand with the same settings,
 *  on the same disk and over TLS too, without an archive. Both run on this host: the guest of a database in a zone
 *  would be the same for either, and the benchmarks of guests measure it. */
import { spawn } from 'node:child_process'
import { chown, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runProgram } from '../agents/node/run-program.ts'
import { probePort } from '../embedded/kit/ports.ts'
import { environment } from '../kit/sys/process.ts'
import { passwordOf } from '../test/agents/node/images/database-machine.ts'
import { until } from '../test/eventually.ts'
import { asPostgres, openArchivedMachine, postgresPrograms, runAsPostgres, whenHealthy } from './databases.ts'
import type { Bench, Side } from './runner.ts'

const SCALE = { full: 10, short: 1 }
const CLIENTS = 4
const OWNER = 'ada'
const DATABASE = 'shop'
const BENCH_MILLISECONDS = 300_000

export const bench: Bench = {
  name: 'B72 database transactions',
  question: `pgbench, ${CLIENTS} clients over TLS, on this host without a guest`,
  subjectName: 'the machine of a database, archiving',
  peerName: 'the same PostgreSQL by hand, not archiving',
  unit: 'transactions',
  goal: 0.95,
  tier: 'e2e',
  program: 'pgbackrest',
  async open(round) {
    const programs = await postgresPrograms()
    const managed = await openArchivedMachine()
    const { machine } = managed
    try {
      await whenHealthy(machine)
      const byHand = await openByHand(programs, join(machine.folder, 'var/lib/svccloud/current'))
      const pgbench = (port: number, ...input: readonly string[]) =>
        runProgram(`${programs}/pgbench`, ['-h', '127.0.0.1', '-p', String(port), '-U', OWNER, ...input, DATABASE], {
          environment: { ...environment(), PGPASSWORD: passwordOf(1), PGSSLMODE: 'require' },
          timeoutMilliseconds: BENCH_MILLISECONDS,
        })
      const sideOf = async (port: number): Promise<Side> => {
        await pgbench(port, '-i', '-q', '-s', String(SCALE[round]))
        return {
          async run(seconds) {
            const time = Math.max(1, Math.round(seconds))
            const said = await pgbench(port, '-n', '-c', String(CLIENTS), '-j', '1', '-T', String(time))
            const perSecond = Number(/tps = ([\d.]+)/.exec(said)?.[1] ?? Number.NaN)
            return { units: perSecond, seconds: 1 }
          },
        }
      }
      return {
        subject: await sideOf(machine.port),
        peer: await sideOf(byHand.port),
        async close() {
          await byHand.close()
          await managed.close()
        },
      }
    } catch (error) {
      await managed.close()
      throw error
    }
  },
}

/** With the settings and the certificate of the machine, except for its archive. */
async function openByHand(programs: string, current: string) {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-bench-'))
  const [data, sockets] = [join(folder, 'data'), join(folder, 'sockets')]
  const uid = Number((await runProgram('id', ['-u', 'postgres'])).trim())
  await mkdir(sockets)
  for (const path of [folder, sockets]) await chown(path, uid, uid)
  const made = ['--encoding=UTF8', '--locale=C.UTF-8', '--auth=trust', '--data-checksums', '--username=postgres']
  await runAsPostgres(`${programs}/initdb`, '-D', data, ...made)
  const port = await probePort('127.0.0.1', 0)
  const settings = {
    data_directory: data,
    hba_file: join(folder, 'pg_hba.conf'),
    port: String(port),
    unix_socket_directories: sockets,
    archive_mode: 'off',
  }
  const own = Object.entries(settings).map(([name, value]) => `${name} = '${value}'`)
  const theirs = await readFile(join(current, 'postgresql.conf'), 'utf8')
  // The last setting counts.
  await writeFile(join(folder, 'postgresql.conf'), `${theirs}\n${own.join('\n')}\n`)
  await writeFile(settings.hba_file, 'local all postgres trust\nhostssl all all 127.0.0.0/8 scram-sha-256\n')
  const [program = '', ...before] = asPostgres
  const command = [
    ...before,
    `${programs}/postgres`,
    '-D',
    data,
    '-c',
    `config_file=${join(folder, 'postgresql.conf')}`,
  ]
  const server = spawn(program, command, { stdio: 'ignore', cwd: '/' })
  const ended = new Promise<void>((resolve) => server.once('exit', () => resolve()))
  const sql = (text: string) =>
    runAsPostgres(`${programs}/psql`, '-X', '-q', '-h', sockets, '-p', String(port), '-U', 'postgres', '-c', text)
  await until(
    'PostgreSQL',
    () => sql('select 1'),
    (answer) => answer !== '',
  )
  await sql(`create role ${OWNER} login password '${passwordOf(1)}'`)
  await sql(`create database ${DATABASE} owner ${OWNER}`)
  return {
    port,
    async close() {
      server.kill('SIGINT')
      await ended
      await rm(folder, { recursive: true, force: true })
    },
  }
}
