/** The metric of an agent for OVN's controller of its host, on a real OVN whose controller is killed and started again,
 *  as whatever keeps it running does. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { nodeBinary, signalProcess } from '../../../../kit/sys/process.ts'
import { openOvnWorld, type OvnWorld } from '../../../controllers/network/ovn/ovn-world.ts'
import { until } from '../../../eventually.ts'

const NAME = 'svccloud_node_ovn_controller_start_time_seconds'
let world: OvnWorld
let home: string
const onHost = (...words: readonly string[]) => world.run('h1', 'env', `OVS_RUNDIR=${home}`, ...words)

beforeAll(async () => {
  world = await openOvnWorld()
  home = join(world.folder, 'h1')
})
afterAll(() => world?.close())

/** The file with the process id of a program of the host. */
const pidFileOf = async (program: string): Promise<string> =>
  join(home, (await readdir(home)).find((name) => name.endsWith(`-${program}.pid`)) ?? '')
const kill = async (program: string) =>
  expect(signalProcess(Number(await readFile(await pidFileOf(program), 'utf8')), 'SIGKILL')).toBe(true)

/** What the agent of the host answers; undefined without a value. */
async function metric(): Promise<number | undefined> {
  const text = await onHost(nodeBinary(), join(import.meta.dirname, 'ovn-controller-metric.ts'))
  const value = new RegExp(`^${NAME} (\\S+)$`, 'm').exec(text)?.[1]
  return value === undefined ? undefined : Number(value)
}
const started = (isSo: (value: number | undefined) => boolean) => until('the start of the controller', metric, isSo)

test('says when it was started, and another moment after it was killed and started again', async () => {
  const first = await started((value) => value !== undefined)
  expect(first).toBeGreaterThan(1_700_000_000) // seconds, and of this decade
  expect(first).toBeLessThan(10_000_000_000)
  expect(await metric()).toBe(first)
  await kill('ovn-controller')
  const files = ['--detach', '--no-chdir', `--pidfile=${await pidFileOf('ovn-controller')}`]
  await onHost(
    'env',
    `OVN_RUNDIR=${home}`,
    `OVS_LOGDIR=${home}`,
    'ovn-controller',
    ...files,
    `unix:${join(home, 'db.sock')}`,
  )
  expect(await started((value) => value !== undefined && value !== first)).toBeGreaterThan(first ?? 0)
})

test('has no value while Open vSwitch does not answer, and other metrics are still read', async () => {
  await kill('ovsdb-server')
  expect(await metric()).toBeUndefined()
})
