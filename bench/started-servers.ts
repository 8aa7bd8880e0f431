/** Running servers in the state in which the platform leaves them, written without controllers: objects, claims, boot
 *  storage with its volume, and a running instance. */
import { ensureInstance } from '../controllers/nouns/server/drafts.ts'
import type { InstanceObject, Observed, ServerObject, StorageObject } from '../controllers/nouns/server/observed.ts'
import { Namespace } from '../kit/kube/object.ts'
import { systemClock as clock } from '../kit/sys/clock.ts'
import { newUuid, systemRandom as random } from '../kit/sys/random.ts'
import { Instance, nodeNamespace, Volume } from '../resources/instance/index.ts'
import { Server } from '../resources/server/index.ts'
import { Storage } from '../resources/storage/index.ts'
import type { OperationProgress } from '../resources/kit/shapes.ts'
import { type Cloud, serverSpec, TEMPLATE, ZONE } from './cloud.ts'
import { openProcess } from './controllers.ts'

const BATCH = 500
const SIZE = { cores: 1, memoryMebibytes: 256, storageGibibytes: 1 }
export const NODE = 'n1'
/** Server, storage, volume and instance. */
export const OBJECTS_OF_SERVER = 4

/** Creates them on the node NODE, and lets controllers write what is missing. */
export async function createStartedServers(cloud: Cloud, count: number): Promise<void> {
  await cloud.store.create(Namespace, { metadata: { name: nodeNamespace(NODE) }, spec: undefined })
  for (let from = 0; from < count; from += BATCH)
    await Promise.all(
      Array.from({ length: Math.min(BATCH, count - from) }, (_, index) => createStartedServer(cloud, from + index)),
    )
  const first = openProcess(cloud)
  await first.fill()
  first.begin()
  await first.reconciled('server', count)
  await first.quiet()
  await first.stop()
}

async function createStartedServer(cloud: Cloud, index: number): Promise<void> {
  const { store, accountId, namespace } = cloud
  const name = newUuid(random)
  const now = clock.now().toISOString()
  const macAddress = await claim(cloud, name, index)
  const operation = {
    id: newUuid(random),
    kind: 'server.create',
    requestedAt: now,
    deadlineAt: now,
    actor: 'user:1',
    requestId: 'r',
  } as const
  const server: ServerObject = await store.create(Server, {
    metadata: { name, namespace, finalizers: ['svccloud.dev/server'] },
    spec: serverSpec(index, { operation }),
  })
  const progress: OperationProgress = {
    id: operation.id,
    kind: operation.kind,
    status: 'succeeded',
    step: 'started',
    stepIndex: 4,
    stepCount: 4,
    error: '',
    actor: 'user:1',
    createdAt: now,
    deadlineAt: now,
    finishedAt: now,
  }
  await store.patch(Server, { namespace, name }, { status: { state: 'started', operation: progress } }, 'status')
  const storage = await createBootStorage(cloud, name)
  const observed: Observed = {
    accountId,
    plan: undefined,
    zone: { displayName: 'Zone', region: 'region-1', isClosed: false, capabilities: [] },
    isSystemKnown: true,
    isGroupMissing: false,
    claims: undefined,
    storage,
    instance: undefined,
    isHostReachable: true,
    userData: undefined,
    hasUserDataCopy: true,
    editor: '',
    requests: [],
  }
  const claims = {
    macAddress,
    addresses: [],
    disks: [],
    forcedVolumes: [],
    placement: { accountId, serverId: name, zone: ZONE, node: NODE, ...SIZE },
  }
  const power = { power: 'running', incarnation: 1, operationId: operation.id } as const
  const ensured = ensureInstance(server, observed, claims, storage, power)
  if (ensured?.do !== 'ensure') throw new Error('a new server needs an instance')
  // a draft of an Instance
  const { metadata } = await store.create(Instance, ensured.draft as Pick<InstanceObject, 'metadata' | 'spec'>)
  await store.patch(
    Instance,
    { namespace: metadata.namespace ?? '', name: metadata.name },
    { status: { state: 'running', incarnation: 1, observedGeneration: 1, startedAt: now } },
    'status',
  )
}

/** Claims room on the node and a MAC address, which it returns. */
async function claim({ db, accountId }: Cloud, name: string, index: number): Promise<string> {
  const macBytes = [16, 8, 0].map((shift) => ((index >> shift) & 255).toString(16).padStart(2, '0'))
  const macAddress = `52:54:00:${macBytes.join(':')}`
  const held = { account_id: accountId, claimed_at: clock.now() }
  await db
    .insertInto('placement')
    .values({
      ...held,
      server_id: name,
      zone: ZONE,
      node: NODE,
      cores: SIZE.cores,
      memory_mebibytes: SIZE.memoryMebibytes,
      storage_gibibytes: SIZE.storageGibibytes,
    })
    .execute()
  await db
    .insertInto('address_claim')
    .values({ ...held, kind: 'mac', scope: '', value: macAddress, holder: `server/${name}` })
    .execute()
  return macAddress
}

/** The storage and its volume, both ready. */
async function createBootStorage({ store, namespace }: Cloud, name: string): Promise<StorageObject> {
  const storage = await store.create(Storage, {
    metadata: { name, namespace, finalizers: ['svccloud.dev/storage'] },
    spec: {
      zone: ZONE,
      title: '',
      sizeGibibytes: SIZE.storageGibibytes,
      tier: 'standard',
      isBoot: true,
      serverId: name,
      labels: {},
      isProtected: false,
      source: { kind: 'template', id: TEMPLATE },
    },
  })
  const uid = storage.metadata.uid ?? ''
  const volume = { namespace: nodeNamespace(NODE), name: uid }
  await store.create(Volume, {
    metadata: volume,
    spec: { storage: { namespace, name, uid }, sizeGibibytes: 1, source: { kind: 'template', name: TEMPLATE } },
  })
  await store.patch(Volume, volume, { status: { state: 'ready' } }, 'status')
  return storage
}
