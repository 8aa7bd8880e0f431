/** Snapshots on shared storage go with their server to another host, and storages are made from them there. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { accountNamespace } from '../../../../resources/index.ts'
import { Node } from '../../../../resources/node/index.ts'
import { Server, type ServerSpec } from '../../../../resources/server/index.ts'
import { Snapshot, type SnapshotSpec } from '../../../../resources/snapshot/index.ts'
import { Storage, type StorageSpec } from '../../../../resources/storage/index.ts'
import { createAccount } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud, ZONE } from '../../cloud.ts'
import { until } from '../../until.ts'
import { requestedNow } from '../../requested.ts'

const database = useDatabase()
const NODES = ['n1', 'n2'] as const
let cloud: Cloud

beforeAll(async () => {
  cloud = await openCloud(database.db, undefined, NODES)
  for (const node of NODES) cloud.startAgent(node)
  cloud.startControllers()
})
afterAll(() => cloud.close())

test('a storage is made from a snapshot after the server has moved', async () => {
  const accountId = await createAccount(database.db)
  await cloud.openAccount(accountId)
  const key = (name: string) => ({ namespace: accountNamespace(accountId), name })
  for (const name of NODES)
    await until(
      `node ${name}`,
      () => cloud.kubectl.get(Node, { name }),
      (found) => found?.status?.state === 'ready',
    )
  const spec = { hostname: 'web', zone: ZONE, plan: 'tiny', template: 'tiny-linux' } as unknown as ServerSpec
  await cloud.kubectl.create(Server, { metadata: key('web'), spec })
  const settled = (what: string, kind?: string) =>
    until(
      what,
      () => cloud.kubectl.get(Server, key('web')),
      (found) =>
        found?.status?.state === 'started' &&
        (kind === undefined || found.status.operation?.kind === kind) &&
        found.status.operation?.finishedAt !== undefined,
    )
  const storage = (name: string) => cloud.kubectl.get(Storage, key(name))
  await settled('started')
  const before = (await storage('web'))?.status
  expect(before?.pool).toBeDefined()
  await cloud.kubectl.create(Snapshot, { metadata: key('s1'), spec: { storageId: 'web' } as SnapshotSpec })
  await until(
    'snapshot',
    () => cloud.kubectl.get(Snapshot, key('s1')),
    (found) => found?.status?.state === 'online',
  )
  const operation = requestedNow('server.migrate', { seconds: 3_600, actor: 'operator' })
  await cloud.kubectl.patch(Server, key('web'), { spec: { operation } })
  const moved = await settled('moved', 'server.migrate')
  expect(moved?.status?.operation).toMatchObject({ status: 'succeeded' })
  const after = await until(
    'the other node',
    () => storage('web'),
    (found) => found?.status?.nodeName !== undefined && found.status.nodeName !== before?.nodeName,
  )
  expect(after?.status?.pool).toBe(before?.pool)

  const source = { kind: 'snapshot' as const, id: 's1' }
  const clone = { zone: ZONE, sizeGibibytes: 1, source } as StorageSpec // the rest has defaults
  await cloud.kubectl.create(Storage, { metadata: key('clone'), spec: clone })
  await until(
    'clone',
    () => storage('clone'),
    (found) => found?.status?.state === 'online',
  )
})
