/** A database behind `ssl:`, served by a real ovsdb-server: who speaks to it, and whom the controllers speak to. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openOvn } from '../../../../controllers/network/ovn/open-ovn.ts'
import { readTlsFolder } from '../../../../controllers/network/ovn/tls.ts'
import { defined } from '../../../../domain/defined.ts'
import { type Certificate, makeCertificate } from '../../../../kit/sys/certificate.ts'
import { systemClock as clock } from '../../../../kit/sys/clock.ts'
import { silentLog as log } from '../../../../kit/sys/log.ts'
import { systemRandom as random } from '../../../../kit/sys/random.ts'
import { scriptOf } from '../../../docs/blocks.ts'

const execute = promisify(execFile)
const ZONE = 'z1'
const SWITCH = { table: 'Logical_Switch', key: 'net', columns: { name: 'net' } } as const

let folder: string
let ours: Certificate
let foreign: Certificate
const servers: ChildProcess[] = []

const sign = (authority: Certificate | undefined, hosts: readonly string[] = []) =>
  makeCertificate({
    commonName: hosts[0] ?? 'a program',
    days: 1,
    hosts,
    isAuthority: authority === undefined,
    ...defined({ authority }),
    now: clock.now(),
    random,
  })

/** A folder as programs are given it. */
async function keep(name: string, { key, certificate }: Certificate, authority: Certificate): Promise<string> {
  const path = join(folder, name)
  await mkdir(path, { recursive: true })
  await writeFile(join(path, 'tls.key'), key)
  await writeFile(join(path, 'tls.crt'), certificate)
  await writeFile(join(path, 'ca.crt'), authority.certificate)
  return path
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as { readonly port: number } // it listens at a port
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** It ends with the tests. */
const begin = (path: string, program: string, words: readonly string[]): void =>
  void servers.push(
    spawn(program, words, {
      env: { ...process.env, OVS_RUNDIR: path, OVN_RUNDIR: path, OVS_DBDIR: path },
      stdio: 'ignore',
    }),
  )

/** Both databases, at `ssl:127.0.0.1`, with what is in the folder. Answers the remote. */
async function serve(path: string): Promise<string> {
  const files = ['nb', 'sb'].map((database) => join(path, `${database}.db`))
  for (const [index, database] of ['nb', 'sb'].entries())
    await execute('ovsdb-tool', ['create', files[index] ?? '', `/usr/share/ovn/ovn-${database}.ovsschema`])
  const port = await freePort()
  begin(path, 'ovsdb-server', [
    `--remote=pssl:${port}:127.0.0.1`,
    `--remote=punix:${join(path, 'db.sock')}`,
    `--unixctl=${join(path, 'db.ctl')}`,
    `--private-key=${join(path, 'tls.key')}`,
    `--certificate=${join(path, 'tls.crt')}`,
    `--ca-cert=${join(path, 'ca.crt')}`,
    ...files,
  ])
  const client = (database: string, row: object) =>
    execute('ovsdb-client', [
      'transact',
      `unix:${join(path, 'db.sock')}`,
      JSON.stringify([`OVN_${database}`, { op: 'insert', table: `${database.slice(0, 1)}B_Global`, row }]),
    ])
  await expect
    .poll(() =>
      client('Northbound', {}).then(
        () => true,
        () => false,
      ),
    )
    .toBe(true)
  await client('Southbound', {})
  return `ssl:127.0.0.1:${port}`
}

/** The southbound database as the documentation has it set up, with the rights that `ovn-northd` writes into it. */
async function serveSouthbound(path: string) {
  const at = await mkdtemp(join(folder, 'southbound-'))
  const socket = (name: string) => join(at, `${name}.sock`)
  for (const name of ['nb', 'sb']) {
    const [file, database] = [
      join(at, `${name}.db`),
      name === 'nb' ? 'OVN_Northbound,NB_Global' : 'OVN_Southbound,SB_Global',
    ]
    await execute('ovsdb-tool', ['create', file, `/usr/share/ovn/ovn-${name}.ovsschema`])
    const [schema = ''] = database.split(',')
    begin(at, 'ovsdb-server', [
      `--remote=punix:${socket(name)}`,
      `--remote=db:${database},connections`,
      `--unixctl=${join(at, `${name}.ctl`)}`,
      `--private-key=db:${schema},SSL,private_key`,
      `--certificate=db:${schema},SSL,certificate`,
      `--ca-cert=db:${schema},SSL,ca_cert`,
      file,
    ])
  }
  const [northbound, southbound] = [`unix:${socket('nb')}`, `unix:${socket('sb')}`]
  const port = await freePort()
  const control = (...words: string[]) => execute('ovn-sbctl', ['--no-leader-only', `--db=${southbound}`, ...words])
  await expect
    .poll(() =>
      control('init').then(
        () => true,
        () => false,
      ),
    )
    .toBe(true)
  await control(
    'set-ssl',
    join(path, 'tls.key'),
    join(path, 'tls.crt'),
    join(path, 'southbound-ca.crt'),
    '--',
    'set-connection',
    'role=ovn-controller',
    `pssl:${port}:127.0.0.1`,
  )
  begin(at, 'ovn-northd', [
    `--ovnnb-db=${northbound}`,
    `--ovnsb-db=${southbound}`,
    `--unixctl=${join(at, 'northd.ctl')}`,
  ])
  await expect
    .poll(async () => (await control('--bare', '--columns=name', 'list', 'RBAC_Role')).stdout)
    .toContain('ovn-controller')
  return {
    /** What the database answers to whoever has what is in the folder. */
    transact: async (tlsFolder: string, operations: readonly object[]): Promise<string> =>
      (
        await execute('ovsdb-client', [
          `--private-key=${join(tlsFolder, 'tls.key')}`,
          `--certificate=${join(tlsFolder, 'tls.crt')}`,
          `--ca-cert=${join(tlsFolder, 'ca.crt')}`,
          'transact',
          `ssl:127.0.0.1:${port}`,
          JSON.stringify(['OVN_Southbound', ...operations]),
        ])
      ).stdout,
  }
}

/** What becomes of a write by whoever has what is in the folder. */
async function writes(remote: string, tlsFolder: string): Promise<string> {
  const ovn = openOvn({ northbound: remote, southbound: remote, readTls: () => readTlsFolder(tlsFolder), clock, log })
  try {
    const { sequence } = await ovn.apply({ zone: ZONE, owner: 'Network/n', rows: [SWITCH] })
    // Of the southbound database: which no host has raised here.
    return sequence >= 0 && (await ovn.installed([])) !== undefined ? 'written' : 'not to be seen'
  } catch (error) {
    return String(error)
  } finally {
    ovn.close()
  }
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-tls-'))
  ours = await sign(undefined)
  foreign = await sign(undefined)
})
afterAll(async () => {
  for (const server of servers) server.kill('SIGKILL')
  await rm(folder, { recursive: true, force: true })
})

test('databases at ssl: are written and read by clients with a certificate of their authority', async () => {
  const remote = await serve(await keep('right', await sign(ours, ['127.0.0.1']), ours))
  expect(await writes(remote, await keep('known', await sign(ours), ours))).toBe('written')
  const unknown = await keep('renewed', await sign(foreign), ours)
  expect(await writes(remote, unknown)).toContain('not available')
  await keep('renewed', await sign(ours), ours)
  expect(await writes(remote, unknown)).toBe('written')
})

test('a database of another authority, or for another host, receives nothing', async () => {
  const remote = await serve(await keep('elsewhere', await sign(ours, ['192.0.2.1']), ours))
  expect(await writes(remote, await keep('own', await sign(ours), ours))).toContain('not available')
  const right = await serve(await keep('true', await sign(ours, ['127.0.0.1']), ours))
  expect(await writes(right, await keep('wary', await sign(ours), foreign))).toContain('not available')
})

describe('certificates that are made as the documentation says', () => {
  let work: string
  beforeAll(async () => {
    const script = (await scriptOf('docs/networks.md')).replaceAll('192.0.2.1', '127.0.0.1')
    work = join(folder, 'documented')
    await mkdir(work)
    await execute('bash', ['-ec', script], { cwd: work })
  })

  test('let controllers write networks, and no host', async () => {
    const remote = await serve(join(work, 'databases'))
    expect(await writes(remote, join(work, 'controllers'))).toBe('written')
    expect(await writes(remote, join(work, 'h1'))).toContain('not available')
  })

  test('let a host write its own rows of the southbound database, and not those of another', async () => {
    const { transact } = await serveSouthbound(join(work, 'databases'))
    const chassis = (name: string) => ({ op: 'insert', table: 'Chassis', row: { name, encaps: ['named-uuid', 'e'] } })
    const encap = (name: string) => ({
      op: 'insert',
      table: 'Encap',
      'uuid-name': 'e',
      row: { type: 'geneve', ip: '192.0.2.11', chassis_name: name },
    })
    const as = (name: string) => transact(join(work, 'h1'), [encap(name), chassis(name)])
    expect(await as('h1')).not.toContain('error')
    expect(await as('h2')).toContain('permission error')
    const flow = { op: 'delete', table: 'Logical_Flow', where: [] }
    expect(await transact(join(work, 'h1'), [flow])).toContain('permission error')
  })
})
