/** What a move does in PostgreSQL, asked for by a controller that sees the server as it was or as it is. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openSweepRate } from '../../../../../controllers/kit/sweep-rate.ts'
import type { Parts } from '../../../../../controllers/kit/parts.ts'
import { serverEffects } from '../../../../../controllers/nouns/server/effects.ts'
import { migrationEffects } from '../../../../../controllers/nouns/server/migration/effects.ts'
import { mirrorNode } from '../../../../../db/placement/index.ts'
import { claimServer, findServerClaims, releaseServer } from '../../../../../db/server/index.ts'
import { openCaches } from '../../../../../kit/kube/caches.ts'
import { keyOf, type KubeObject } from '../../../../../kit/kube/object.ts'
import { isConflict } from '../../../../../kit/kube/store.ts'
import type { EffectReport } from '../../../../../kit/reconcile/reconciler.ts'
import { silentLog } from '../../../../../kit/sys/log.ts'
import { openRegistry } from '../../../../../kit/sys/metrics.ts'
import { newUuid, systemRandom } from '../../../../../kit/sys/random.ts'
import { accountNamespace } from '../../../../../resources/index.ts'
import {
  NODE_REPORT_NAME,
  nodeNamespace,
  NodeReport,
  type NodeReportSpec,
} from '../../../../../resources/instance/index.ts'
import { Node, type NodeSpec } from '../../../../../resources/node/index.ts'
import { Server, type ServerSpec, type ServerStatus } from '../../../../../resources/server/index.ts'
import { createAccount } from '../../../../accounts.ts'
import { useDatabase } from '../../../../database.ts'
import { type Cloud, fastClock, openCloud, ZONE } from '../../../cloud.ts'

const database = useDatabase()
const ROOT = { apiVersion: 'svccloud.dev/v1alpha1', kind: '' }
const ROOM = { cores: 1, memoryMebibytes: 192, storageGibibytes: 1 }
const NODES = ['here', 'there'] as const
let cloud: Cloud

beforeAll(async () => {
  cloud = await openCloud(database.db)
  for (const node of NODES) {
    await mirrorNode(database.db, {
      node,
      zone: ZONE,
      rack: node,
      cpuPool: null,
      dedicatedAccountId: null,
      isSchedulable: true,
      total: { cores: 8, memoryMebibytes: 4_096, storageGibibytes: 100 },
    })
  }
})
afterAll(() => cloud.close())

async function placed(): Promise<{
  readonly accountId: string
  readonly server: KubeObject<ServerSpec, ServerStatus>
}> {
  const accountId = await createAccount(database.db)
  await cloud.openAccount(accountId)
  const server = await cloud.kubectl.create(Server, {
    metadata: { namespace: accountNamespace(accountId), name: newUuid(systemRandom) },
    spec: {
      hostname: 'web',
      zone: ZONE,
      plan: 'tiny',
      template: 'tiny-linux',
      desiredPower: 'stopped',
    } as unknown as ServerSpec, // the API server fills in the defaults
  })
  await database.db
    .transaction()
    .execute((tx) =>
      claimServer(
        tx,
        { accountId, serverId: server.metadata.name, hostname: 'web', zone: ZONE, ...ROOM },
        { now: fastClock.now(), random: systemRandom },
      ),
    )
  return { accountId, server }
}

function parts(): Parts {
  const { kubectl: store } = cloud
  const caches = openCaches({
    store,
    clock: fastClock,
    random: systemRandom,
    log: silentLog,
    registry: openRegistry({ isProcessWide: false }),
  })
  return {
    store,
    caches,
    db: database.db,
    clock: fastClock,
    random: systemRandom,
    log: silentLog,
    sweepRate: openSweepRate(fastClock),
  }
}

function reserve(
  accountId: string,
  server: KubeObject<ServerSpec, ServerStatus>,
  {
    of = parts(),
    ...more
  }: { readonly of?: Parts; readonly pools?: readonly string[]; readonly isToShare?: true } = {},
): Promise<unknown> {
  const effects = migrationEffects(of)
  const input = { accountId, serverId: server.metadata.name, operationId: 'op-1', ...more }
  return effects['reserve']?.(input, server) ?? Promise.reject(new Error('there is no such effect'))
}

const target = async (accountId: string, server: KubeObject) =>
  (await findServerClaims(database.db, { accountId, serverId: server.metadata.name }))?.target

test('room is held for a move that was planned from the server as it is', async () => {
  const { accountId, server } = await placed()
  await reserve(accountId, server)
  expect(await target(accountId, server)).toMatchObject({ operationId: 'op-1' })
})

/** As a process that knows what the nodes report. */
function knowing(pools: Readonly<Record<string, readonly string[]>>): Parts {
  const of = parts()
  const known = { resourceVersion: '1' }
  for (const [name, reached] of Object.entries(pools)) {
    of.caches.of(Node).apply({ ...ROOT, metadata: { ...known, name }, spec: {} as NodeSpec }) // its name is what counts
    const metadata = { ...known, namespace: nodeNamespace(name), name: NODE_REPORT_NAME }
    of.caches.of(NodeReport).apply({ ...ROOT, metadata, spec: { pools: [...reached] } as unknown as NodeReportSpec })
  }
  return of
}

test('room is held only where the shared storage is that its disks lie on, or are to lie on', async () => {
  const { accountId, server } = await placed()
  const here = (await findServerClaims(database.db, { accountId, serverId: server.metadata.name }))?.placement.node
  const [there = ''] = NODES.filter((node) => node !== here)
  const outcome = async (reached: readonly string[], more: Parameters<typeof reserve>[2]) => {
    const answer = await reserve(accountId, server, {
      of: knowing({ [here ?? '']: ['p1'], [there]: reached }),
      ...more,
    })
    return (answer as EffectReport).conditions?.[0]?.reason
  }
  expect(await outcome([], { isToShare: true })).toBe('NoCapacity')
  expect(await outcome(['p1'], { pools: ['p1', 'p2'] })).toBe('NoCapacity')
  expect(await target(accountId, server)).toBeUndefined()
  expect(await outcome(['p1', 'p2'], { pools: ['p1', 'p2'], isToShare: true })).toBe('Reserved')
  expect(await target(accountId, server)).toMatchObject({ node: there })
})

test('no room is held for a move that was planned from a server as it was', async () => {
  const { accountId, server } = await placed()
  await cloud.kubectl.patch(Server, keyOf(server), { spec: { title: 'moved meanwhile' } })
  await expect(reserve(accountId, server)).rejects.toSatisfy(isConflict)
  expect(await target(accountId, server)).toBeUndefined()
})

test('no room is held for a server that is deleted', async () => {
  const { accountId, server } = await placed()
  await cloud.kubectl.delete(Server, keyOf(server))
  await expect(reserve(accountId, server)).rejects.toSatisfy(isConflict)
  expect(await target(accountId, server)).toBeUndefined()
})

test('nothing is claimed again for a server that has gone meanwhile', async () => {
  const { accountId, server } = await placed()
  const of = { accountId, serverId: server.metadata.name }
  await database.db.transaction().execute((tx) => releaseServer(tx, of))
  await cloud.kubectl.delete(Server, keyOf(server))
  const { claim } = serverEffects(parts(), new Map())
  await expect(claim({ ...of, hostname: 'web', zone: ZONE, ...ROOM }, server)).rejects.toSatisfy(isConflict)
  expect(await findServerClaims(database.db, of)).toBeUndefined()
})
