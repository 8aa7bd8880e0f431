/** What a move does in PostgreSQL, asked for by a controller that sees the server as it was or as it is. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Parts } from '../../../../controllers/parts.ts'
import { serverEffects } from '../../../../controllers/server/effects.ts'
import { migrationEffects } from '../../../../controllers/server/migration/effects.ts'
import { mirrorNode } from '../../../../db/placement/index.ts'
import { claimServer, findServerClaims, releaseServer } from '../../../../db/server/index.ts'
import { openCaches } from '../../../../kit/kube/caches.ts'
import { keyOf, type KubeObject } from '../../../../kit/kube/object.ts'
import { isConflict } from '../../../../kit/kube/store.ts'
import { silentLog } from '../../../../kit/sys/log.ts'
import { openRegistry } from '../../../../kit/sys/metrics.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { Server, type ServerSpec, type ServerStatus } from '../../../../resources/server/index.ts'
import { createAccount } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, fastClock, openCloud, ZONE } from '../../cloud.ts'

const database = useDatabase()
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
  return { store, caches, db: database.db, clock: fastClock, random: systemRandom, log: silentLog }
}

function reserve(accountId: string, server: KubeObject<ServerSpec, ServerStatus>): Promise<unknown> {
  const effects = migrationEffects(parts())
  const input = { accountId, serverId: server.metadata.name, operationId: 'op-1' }
  return effects['reserve']?.(input, server) ?? Promise.reject(new Error('there is no such effect'))
}

const target = async (accountId: string, server: KubeObject) =>
  (await findServerClaims(database.db, { accountId, serverId: server.metadata.name }))?.target

test('room is held for a move that was planned from the server as it is', async () => {
  const { accountId, server } = await placed()
  await reserve(accountId, server)
  expect(await target(accountId, server)).toMatchObject({ operationId: 'op-1' })
})

test('no room is held for a move that was planned from a server as it was', async () => {
  const { accountId, server } = await placed()
  await cloud.kubectl.patch(Server, keyOf(server), { spec: { title: 'moved meanwhile' } })
  await expect(reserve(accountId, server)).rejects.toSatisfy(isConflict)
  expect(await target(accountId, server)).toBeUndefined()
})

test('no room is held for a server that is gone', async () => {
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
