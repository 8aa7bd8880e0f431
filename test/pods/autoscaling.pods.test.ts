/** A pool that follows its pods: a real scheduler finds no room, a further node joins with a real kubelet and runs what
 *  waited, and goes again once its pods find room elsewhere. The clock of the controllers runs ten times as fast. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { until } from '../eventually.ts'
import { useDatabase } from '../database.ts'
import { type PlayedPool, startPool } from './pool.ts'
import { deployment } from './workloads.ts'

const WAIT_MILLISECONDS = 240_000
/** Enough for one control plane. */
const MEMORY_BYTES = 1024 ** 3

const database = useDatabase()
let folder: string
let pool: PlayedPool

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-scaling-'))
  pool = await startPool(database.db, {
    folder,
    version: '1.36',
    host: { memoryBytes: MEMORY_BYTES },
    pool: { autoscaling: { min: 1, max: 2 } },
  })
}, 900_000)

afterAll(async () => {
  await pool?.end()
  if (folder) await rm(folder, { recursive: true, force: true })
})

/** The nodes that its pods run on, one for each that is ready. */
async function nodesOf(app: string): Promise<readonly string[]> {
  const path = '{range .items[?(@.status.containerStatuses[0].ready==true)]}{.spec.nodeName}{"\\n"}{end}'
  const text = await pool.kubectl('get', 'pods', '-l', `app=${app}`, '-o', `jsonpath=${path}`)
  return text.split('\n').filter((name) => name !== '')
}
const running = (app: string, count: number) =>
  until(
    `${count} pods of ${app}`,
    () => nodesOf(app),
    ({ length }) => length === count,
    WAIT_MILLISECONDS,
  )

test('a pod that finds no node brings one, which runs it, and goes again when its pods find room', async () => {
  const [first] = await pool.settled(1)
  await pool.apply(
    deployment({ name: 'big', replicas: 1, cpu: '1300m' }),
    deployment({ name: 'small', replicas: 1, cpu: '350m' }),
  )
  for (const app of ['big', 'small']) expect(await running(app, 1)).toEqual([first])
  await pool.kubectl('scale', 'deployment/small', '--replicas=2')
  const names = await pool.settled(2)
  const [second = ''] = names.filter((name) => name !== first)
  expect((await running('small', 2)).toSorted()).toEqual([first, second].toSorted())

  await pool.kubectl('scale', 'deployment/big', '--replicas=0')
  expect(await pool.settled(1)).toEqual([first])
  expect(await running('small', 2)).toEqual([first, first])
  expect(await pool.kubectl('get', 'nodes', '-o', 'name')).toBe(`node/${first}\n`)
  const reasons = await pool.kubectl('get', 'events', '-A', '-o', 'jsonpath={.items[*].reason}')
  expect(reasons).toContain('FailedScheduling')
}, 600_000)
