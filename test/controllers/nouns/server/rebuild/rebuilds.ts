/** What tests of rebuilds and changes of plans have in common: a real agent, a real database, and a server each. */
import { afterAll, beforeAll, beforeEach, expect } from 'vitest'
import { findCandidate } from '../../../../../db/placement/index.ts'
import { listQuotas } from '../../../../../db/account/index.ts'
import { findServerClaims } from '../../../../../db/server/index.ts'
import { type KubeObject, Secret } from '../../../../../kit/kube/object.ts'
import { newUuid, systemRandom } from '../../../../../kit/sys/random.ts'
import { accountNamespace } from '../../../../../resources/index.ts'
import { Instance, nodeNamespace, Volume } from '../../../../../resources/instance/index.ts'
import { Operation } from '../../../../../resources/operation/index.ts'
import { Plan, Template } from '../../../../../resources/catalog/index.ts'
import { Server, type ServerSpec, type ServerStatus } from '../../../../../resources/server/index.ts'
import type { OperationStanza } from '../../../../../resources/kit/shapes.ts'
import { Storage } from '../../../../../resources/storage/index.ts'
import { createAccount } from '../../../../accounts.ts'
import { useDatabase } from '../../../../database.ts'
import { type Cloud, fastClock, NODE, openCloud, ZONE } from '../../../cloud.ts'
import { until } from '../../../until.ts'

export type ServerObject = KubeObject<ServerSpec, ServerStatus>

/** Opens it for the file that calls this, and an account for each of its tests. */
export function useRebuilds() {
  const database = useDatabase()
  let cloud: Cloud
  let accountId: string
  let namespace: string

  beforeAll(async () => {
    cloud = await openCloud(database.db)
    cloud.startAgent()
    for (const [name, cores, storageGibibytes] of [
      ['small', 2, 3],
      ['bare', 3, 1],
      ['huge', 64, 4],
    ] as const) {
      await cloud.kubectl.create(Plan, {
        metadata: { name },
        spec: { family: 'starter', cores, memoryMebibytes: cores * 192, storageGibibytes, priceMonthlyCents: 100 },
      })
    }
    const tiny = await cloud.kubectl.get(Template, { name: 'tiny-linux' })
    if (tiny !== undefined) await cloud.kubectl.create(Template, { metadata: { name: 'other-linux' }, spec: tiny.spec })
  })
  afterAll(() => cloud.close())
  beforeEach(async () => {
    accountId = await createAccount(database.db)
    namespace = accountNamespace(accountId)
    await cloud.openAccount(accountId)
  })

  const read = () => cloud.kubectl.get(Server, { namespace, name: 'web' })
  const isIdle = (server: ServerObject | undefined) =>
    server?.spec.operation?.id === server?.status?.operation?.id && server?.status?.operation?.finishedAt !== undefined
  const inState = (state: ServerStatus['state']) =>
    until(state, read, (server) => server?.status?.state === state && isIdle(server)) as Promise<ServerObject>
  const ended = (operation: OperationStanza) =>
    until(
      `the end of ${operation.kind}`,
      read,
      (server) => server?.status?.operation?.id === operation.id && isIdle(server),
    ) as Promise<ServerObject>

  async function create(state: 'started' | 'stopped', spec: Partial<ServerSpec> = {}): Promise<ServerObject> {
    const bare = {
      hostname: 'web',
      zone: ZONE,
      plan: 'tiny',
      template: 'tiny-linux',
      desiredPower: state === 'started' ? 'running' : 'stopped',
    } as unknown as ServerSpec // the API server fills in the defaults
    await cloud.kubectl.create(Server, { metadata: { name: 'web', namespace }, spec: { ...bare, ...spec } })
    return inState(state)
  }

  /** As the API writes it. */
  async function begin(
    kind: 'server.rebuild' | 'server.change_plan',
    spec: Partial<Record<keyof ServerSpec, unknown>>,
    args: Record<string, string>,
    { deadlineSeconds = 600 } = {},
  ): Promise<OperationStanza> {
    const now = fastClock.now()
    const operation: OperationStanza = {
      id: newUuid(systemRandom),
      kind,
      requestedAt: now.toISOString(),
      deadlineAt: new Date(now.getTime() + deadlineSeconds * 1_000).toISOString(),
      actor: 'user:1',
      requestId: newUuid(systemRandom),
      arguments: args,
    }
    await cloud.kubectl.patch(Server, { namespace, name: 'web' }, { spec: { ...spec, operation } })
    return operation
  }
  const rebuild = (
    spec: Partial<Record<keyof ServerSpec, unknown>> = { template: 'other-linux' },
    args: Record<string, string> = {},
    rest = {},
  ) => begin('server.rebuild', spec, { previous_boot_storage: 'web', previous_template: 'tiny-linux', ...args }, rest)
  const changePlan = (plan: string, storageGibibytes: number, { start = false } = {}) =>
    begin(
      'server.change_plan',
      { plan, storageGibibytes, ...(start ? { desiredPower: 'running' } : {}) },
      { previous_plan: 'tiny', previous_storage_gibibytes: '1', ...(start ? { start: 'true' } : {}) },
    )

  const disks = () => [...cloud.volumes.values()].map(({ sizeGibibytes, source }) => `${source?.name} ${sizeGibibytes}`)
  const storages = async () =>
    (await cloud.kubectl.list(Storage, { namespace })).items.map(({ metadata }) => metadata.name)
  const operations = async () =>
    (await cloud.kubectl.list(Operation, { namespace })).items
      .map(({ spec, status }) => `${spec.kind} ${status?.status} ${spec.actor}`)
      .sort()
  const sizes = async () => {
    const used = Object.fromEntries(
      (await listQuotas(database.db, accountId)).map(({ name, used: amount }) => [name, amount]),
    )
    const claims = await findServerClaims(database.db, { accountId, serverId: 'web' })
    const node = (await findCandidate(database.db, NODE))?.used
    return [
      [claims?.placement.cores, claims?.placement.storageGibibytes],
      [node?.cores, node?.storageGibibytes],
      [used['cores'], used['storage_gibibytes']],
    ]
  }
  const everywhere = (cores: number, storage: number) => [
    [cores, storage],
    [cores, storage],
    [cores, storage],
  ]
  const instanceOf = async (server: ServerObject) =>
    (await cloud.kubectl.get(Instance, { namespace: nodeNamespace(NODE), name: server.metadata.uid ?? '' }))?.spec

  async function removeServer() {
    await cloud.kubectl.delete(Server, { namespace, name: 'web' })
    await until('no server', read, (server) => server === undefined)
    expect({
      guests: cloud.host.running().length,
      disks: disks(),
      storages: await storages(),
      secrets: (await cloud.kubectl.list(Secret, { namespace })).items.length,
    }).toEqual({ guests: 0, disks: [], storages: [], secrets: 0 })
    expect((await cloud.kubectl.list(Volume, { namespace: nodeNamespace(NODE) })).items).toEqual([])
    expect((await findCandidate(database.db, NODE))?.used).toEqual({
      cores: 0,
      memoryMebibytes: 0,
      storageGibibytes: 0,
    })
  }
  return {
    database,
    get cloud() {
      return cloud
    },
    get accountId() {
      return accountId
    },
    get namespace() {
      return namespace
    },
    read,
    isIdle,
    ended,
    create,
    rebuild,
    changePlan,
    begin,
    disks,
    storages,
    operations,
    sizes,
    everywhere,
    instanceOf,
    removeServer,
  }
}
