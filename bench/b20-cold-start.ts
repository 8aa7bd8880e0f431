/** Controllers that start beside 10 000 servers at rest: until their caches are filled, against reading and parsing the
 *  same objects once;
 *  and, as facts, until they have looked at every server, and what they wrote meanwhile. */
import { ensureInstance } from '../controllers/server/drafts.ts'
import type { InstanceObject, Observed, ServerObject } from '../controllers/server/observed.ts'
import { openControllers, runControllers } from '../controllers/index.ts'
import { openCaches } from '../kit/kube/caches.ts'
import { type KubeObject, Namespace, type ResourceType } from '../kit/kube/object.ts'
import type { Store } from '../kit/kube/store.ts'
import { openControllerMetrics } from '../kit/reconcile/metrics.ts'
import { systemClock as clock } from '../kit/sys/clock.ts'
import { silentLog as log } from '../kit/sys/log.ts'
import { openRegistry } from '../kit/sys/metrics.ts'
import { newUuid, systemRandom as random } from '../kit/sys/random.ts'
import { Instance, nodeNamespace, Volume } from '../resources/instance/index.ts'
import { Server } from '../resources/server/index.ts'
import { Storage } from '../resources/storage/index.ts'
import { KEY, openCloud, PLAN, TEMPLATE, ZONE } from './cloud.ts'
import type { Bench } from './runner.ts'

const SERVERS = 10_000
const BATCH = 500
const NODE = 'n1'
const OBJECTS = 4 * SERVERS
const POLL_MILLISECONDS = 20
const KINDS: readonly ResourceType[] = [Server, Storage, Instance, Volume]

type Cloud = Awaited<ReturnType<typeof openCloud>>

export const bench: Bench = {
  name: 'B20 cold start',
  question: `controllers until they know ${SERVERS} servers with their disks and guests`,
  subjectName: 'caches filled',
  peerName: 'reading and parsing the lists',
  unit: 'objects',
  goal: 0.5,
  async open() {
    const cloud = await openCloud([NODE])
    await cloud.store.create(Namespace, { metadata: { name: nodeNamespace(NODE) }, spec: undefined })
    for (let from = 0; from < SERVERS; from += BATCH)
      await Promise.all(Array.from({ length: BATCH }, (_, index) => seed(cloud, from + index)))
    await start(cloud) // writes what the seed leaves open
    const whole = await start(cloud)
    return {
      subject: { run: (seconds) => repeat(seconds, () => fill(cloud)) },
      peer: {
        run: (seconds) =>
          repeat(seconds, async () => void (await Promise.all(KINDS.map((type) => cloud.store.list(type))))),
      },
      facts: () => ({
        'seconds until caches are filled': whole.filledSeconds,
        'seconds until every server was looked at': whole.lookedSeconds,
        writes: whole.writes,
      }),
      close: () => cloud.close(),
    }
  },
}

async function repeat(
  seconds: number,
  work: () => Promise<void>,
): Promise<{ readonly units: number; readonly seconds: number }> {
  const begin = clock.monotonicMilliseconds()
  let units = 0
  while (units === 0 || clock.monotonicMilliseconds() - begin < seconds * 1_000) {
    await work()
    units += OBJECTS
  }
  return { units, seconds: (clock.monotonicMilliseconds() - begin) / 1_000 }
}

/** Controllers of a new process: nothing is known. */
function openProcess(cloud: Cloud, store: Store) {
  const registry = openRegistry({ isProcessWide: false })
  const caches = openCaches({ store, clock, random, log, registry })
  const metrics = openControllerMetrics(registry)
  const parts = { store, caches, db: cloud.db, clock, random, log }
  return { caches, metrics, parts, controllers: openControllers({ ...parts, metrics }) }
}

async function fill(cloud: Cloud): Promise<void> {
  const stop = new AbortController()
  const { caches } = openProcess(cloud, cloud.storeOf('svccloud-controllers'))
  caches.start(stop.signal)
  await caches.ready()
  stop.abort()
}

/** A whole start: until every server has had its turn. */
async function start(cloud: Cloud) {
  let writes = 0
  const counting = (store: Store): Store => ({
    ...store,
    create: (type, draft) => (writes++, store.create(type, draft)),
    patch: (type, key, patch, subresource) => (writes++, store.patch(type, key, patch, subresource)),
    apply: (type, draft, subresource) => (writes++, store.apply(type, draft, subresource)),
    delete: (type, key, options) => (writes++, store.delete(type, key, options)),
  })
  const begin = clock.monotonicMilliseconds()
  const since = () => Math.round((clock.monotonicMilliseconds() - begin) / 10) / 100
  const stop = new AbortController()
  const { caches, metrics, parts, controllers } = openProcess(cloud, counting(cloud.storeOf('svccloud-controllers')))
  caches.start(stop.signal)
  await caches.ready()
  const filledSeconds = since()
  const running = runControllers(controllers, parts, stop.signal)
  const turns = async () =>
    (await metrics.reconciles.get()).values
      .filter(({ labels }) => labels.controller === 'server')
      .reduce((sum, { value }) => sum + value, 0)
  while ((await turns()) < SERVERS) await clock.sleep(POLL_MILLISECONDS)
  const lookedSeconds = since()
  stop.abort()
  await running
  return { filledSeconds, lookedSeconds, writes }
}

/** A started server as the platform leaves it: object, claims, boot storage with its volume, and an instance that runs.
 */
async function seed({ store, db, accountId, namespace }: Cloud, index: number): Promise<void> {
  const name = newUuid(random)
  const now = clock.now()
  const holder = `server/${name}`
  const macBytes = [16, 8, 0].map((shift) => ((index >> shift) & 255).toString(16).padStart(2, '0'))
  const macAddress = `52:54:00:${macBytes.join(':')}`
  const size = { cores: 1, memoryMebibytes: 256, storageGibibytes: 1 }
  await db
    .insertInto('placement')
    .values({
      account_id: accountId,
      server_id: name,
      zone: ZONE,
      node: NODE,
      cores: 1,
      memory_mebibytes: 256,
      storage_gibibytes: 1,
      claimed_at: now,
    })
    .execute()
  await db
    .insertInto('address_claim')
    .values({ kind: 'mac', scope: '', value: macAddress, account_id: accountId, holder, claimed_at: now })
    .execute()
  const operation = {
    id: newUuid(random),
    kind: 'server.create',
    requestedAt: now.toISOString(),
    deadlineAt: now.toISOString(),
    actor: 'user:1',
    requestId: 'r',
  } as const
  const server: ServerObject = await store.create(Server, {
    metadata: { name, namespace, finalizers: ['svccloud.dev/server'] },
    spec: {
      hostname: `server-${index}`,
      title: '',
      zone: ZONE,
      plan: PLAN,
      template: TEMPLATE,
      labels: {},
      desiredPower: 'running',
      sshKeys: [KEY],
      haPolicy: 'restart',
      migrationPolicy: 'default',
      publicIpv4: false,
      metadataEnabled: true,
      isProtected: false,
      operation,
    },
  })
  const progress = {
    id: operation.id,
    kind: operation.kind,
    status: 'succeeded',
    step: 'started',
    stepIndex: 4,
    stepCount: 4,
    error: '',
    actor: 'user:1',
    createdAt: operation.requestedAt,
    deadlineAt: operation.deadlineAt,
    finishedAt: now.toISOString(),
  } as const
  await store.patch(Server, { namespace, name }, { status: { state: 'started', operation: progress } }, 'status')
  const storage = await store.create(Storage, {
    metadata: { name, namespace, finalizers: ['svccloud.dev/storage'] },
    spec: {
      zone: ZONE,
      title: '',
      sizeGibibytes: 1,
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
  const seen: Observed = {
    accountId,
    plan: undefined,
    zone: { displayName: 'Zone', region: 'region-1', isClosed: false, capabilities: [] },
    isTemplateKnown: true,
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
    placement: { accountId, serverId: name, zone: ZONE, node: NODE, ...size },
  }
  const ensured = ensureInstance(server, seen, claims, storage, {
    power: 'running',
    incarnation: 1,
    operationId: operation.id,
  })
  if (ensured?.do !== 'ensure') throw new Error('a new server needs an instance')
  // a draft of an Instance
  const made = await store.create(Instance, ensured.draft as Pick<InstanceObject, 'metadata' | 'spec'>)
  await told(store, made, now)
}

const told = (store: Store, { metadata }: KubeObject, now: Date) =>
  store.patch(
    Instance,
    { namespace: metadata.namespace ?? '', name: metadata.name },
    { status: { state: 'running', incarnation: 1, observedGeneration: 1, startedAt: now.toISOString() } },
    'status',
  )
