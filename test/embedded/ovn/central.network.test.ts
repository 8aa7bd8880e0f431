/** The southbound database before ovn-northd runs. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { prepareOvsdb, prepareSouthbound } from '../../../embedded/ovn/central.ts'
import { openSpace, type Space } from '../../../embedded/ovn/space.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { eventually } from '../../eventually.ts'

const run = promisify(execFile)
const SCHEMA = '/usr/share/ovn/ovn-sb.ovsschema'
let folder: string
let space: Space
const children: ChildProcess[] = []
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-central-'))
  space = await openSpace({ folder }, systemClock)
})
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL')
  space.close()
  await space.ended
  await rm(folder, { recursive: true })
})

const IDS = '["OVN_Southbound",{"op":"select","table":"SB_Global","where":[],"columns":["_uuid"]}]'
const rows = async (file: string) =>
  JSON.parse((await run('ovsdb-tool', ['query', file, IDS])).stdout) as [{ rows: unknown[] }] // as ovsdb-tool(1) says

test('it has its one row, which stays', async () => {
  const file = join(folder, 'once.db')
  await prepareOvsdb(file, SCHEMA)
  expect((await rows(file))[0].rows).toEqual([])
  await prepareSouthbound(file, SCHEMA)
  const made = await rows(file)
  expect(made[0].rows).toHaveLength(1)
  await prepareSouthbound(file, SCHEMA)
  expect(await rows(file)).toEqual(made)
})

test('ovn-controller runs on with it, and joins', async () => {
  const [south, local] = [join(folder, 'sb.db'), join(folder, 'conf.db')]
  await prepareSouthbound(south, SCHEMA)
  await prepareOvsdb(local, '/usr/share/openvswitch/vswitch.ovsschema')
  const environment = { PATH: process.env['PATH'], OVS_RUNDIR: folder, OVN_RUNDIR: folder, OVS_DBDIR: folder }
  const start = (command: readonly string[]) => {
    const [program = '', ...words] = space.command(command)
    const child = spawn(program, words, { cwd: folder, env: environment, stdio: 'ignore' })
    children.push(child)
    return child
  }
  const socket = (name: string) => `unix:${join(folder, `${name}.sock`)}`
  for (const [name, file] of [
    ['south', south],
    ['local', local],
  ] as const)
    start(['ovsdb-server', `--remote=p${socket(name)}`, `--unixctl=${join(folder, `${name}.ctl`)}`, '--no-chdir', file])
  await run('ovs-vsctl', [`--db=${socket('local')}`, '--timeout=30', '--retry', '--no-wait', 'init'])
  start(['ovs-vswitchd', '--no-chdir', `--pidfile=${join(folder, 'ovs-vswitchd.pid')}`, socket('local')])
  await run('ovs-vsctl', [
    `--db=${socket('local')}`,
    '--timeout=30',
    'add-br',
    'br-int',
    '--',
    'set',
    'bridge',
    'br-int',
    'datapath_type=netdev',
    'fail-mode=secure',
    '--',
    'set',
    'open',
    '.',
    'external_ids:system-id=h1',
    `external_ids:ovn-remote=${socket('south')}`,
    'external_ids:ovn-encap-type=geneve',
    'external_ids:ovn-encap-ip=127.0.0.1',
  ])
  const controller = start(['ovn-controller', '--no-chdir', `--pidfile=${join(folder, 'c.pid')}`, socket('local')])
  const chassis = '["OVN_Southbound",{"op":"select","table":"Chassis","where":[],"columns":["name"]}]'
  await eventually('the host to join', async () => {
    if (controller.signalCode !== null) throw new Error(`ovn-controller ended by ${controller.signalCode}`)
    return (await run('ovsdb-client', ['transact', socket('south'), chassis])).stdout.includes('"h1"') || undefined
  })
  expect(controller.signalCode).toBeNull()
})
