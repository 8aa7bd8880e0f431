/** The heap of a list that is open while changes arrive, as many as a busy account has in an hour: states of servers,
 *  servers that come and go, and operations that begin and end. The heap without garbage after all of them, against the
 *  heap after a quarter: whatever a page keeps of each change, it keeps four times. */
import type { Page } from 'playwright-core'
import { systemClock as clock } from '../kit/sys/clock.ts'
import { newUuid, systemRandom as random } from '../kit/sys/random.ts'
import { Operation } from '../resources/operation/index.ts'
import { Server } from '../resources/server/index.ts'
import type { Cloud } from './cloud.ts'
import { createRunning, heapMegabytes, LIVE, openPortal, openServers, readChanges } from './portal.ts'
import type { Bench } from './runner.ts'

const SERVERS = { full: 100, short: 20 }
/** Each is a state of every server, one that comes and one that goes, and operations of as many. */
const TURNS = { full: 160, short: 4 }
const QUARTERS = 4
const OPERATIONS_OF_TURN = 5
const PAUSE_MILLISECONDS = 250
const PATIENCE_MILLISECONDS = 60_000

export const bench: Bench = {
  name: 'B85 memory of a page',
  question: 'heap of an open list after an hour of changes',
  subjectName: 'after all changes',
  peerName: 'after a quarter of them',
  unit: 'pages',
  per: 'MB',
  goal: 0.9,
  pairs: 1,
  isCount: true,
  tier: 'browser',
  async open(round) {
    const portal = await openPortal([SERVERS[round]])
    const { cloud } = portal
    const { page, session } = await portal.open(cloud)
    let changes = 0
    const stop = await readChanges(portal, () => void changes++)
    await openServers(page)
    await page.getByRole('button', { name: LIVE }).waitFor()
    const { items } = await cloud.store.list(Server, { namespace: cloud.namespace })
    const names = items.map(({ metadata }) => metadata.name)
    const heaps: number[] = []
    for (let quarter = 0; quarter < QUARTERS; quarter++) {
      for (let turn = 0; turn < TURNS[round] / QUARTERS; turn++) await change(cloud, names)
      await settle(cloud, page, names)
      heaps.push(await heapMegabytes(session))
    }
    const [first = Number.NaN, last = Number.NaN] = [heaps[0], heaps.at(-1)]
    return {
      subject: { run: async () => ({ units: 1, seconds: last }) },
      peer: { run: async () => ({ units: 1, seconds: first }) },
      facts: () => ({
        changes,
        'MB after each quarter': heaps.map((heap) => heap.toFixed(1)).join(' '),
      }),
      async close() {
        stop()
        await portal.close()
      },
    }
  },
}

/** One turn. */
async function change(cloud: Cloud, names: string[]): Promise<void> {
  const { store, namespace } = cloud
  const states = names.map((name) =>
    store.patch(Server, { namespace, name }, { status: { state: 'started', stateDetail: newUuid(random) } }, 'status'),
  )
  const operations = names.slice(0, OPERATIONS_OF_TURN).map((name) => operate(cloud, name))
  await Promise.all([...states, ...operations])
  const oldest = names.shift() ?? ''
  await store.delete(Server, { namespace, name: oldest })
  names.push(await createRunning(cloud, cloud, names.length))
  // The service sends a state of one item at most every quarter of a second.
  await clock.sleep(PAUSE_MILLISECONDS)
}

/** An operation that begins and ends. */
async function operate({ store, namespace }: Cloud, server: string): Promise<void> {
  const [name, now] = [newUuid(random), clock.now().toISOString()]
  await store.create(Operation, {
    metadata: { name, namespace },
    spec: {
      kind: 'server.restart',
      target: { type: 'server', id: server },
      actor: 'user:1',
      requestId: name,
      createdAt: now,
      deadlineAt: now,
      stepCount: 1,
    },
  })
  const status = { status: 'succeeded', step: 'done', stepIndex: 1, error: '', finishedAt: now } as const
  await store.patch(Operation, { namespace, name }, { status }, 'status')
}

/** Waits until the page shows what changes last. */
async function settle({ store, namespace }: Cloud, page: Page, names: readonly string[]): Promise<void> {
  const title = newUuid(random)
  await store.patch(Server, { namespace, name: names.at(-1) ?? '' }, { spec: { title } })
  await page.getByText(title, { exact: true }).first().waitFor({ timeout: PATIENCE_MILLISECONDS })
}
