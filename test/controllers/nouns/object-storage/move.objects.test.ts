/** A move from one real store to another by controllers that are killed behind every write, while a client writes: the
 *  target is another single host that stands for the gateway. */
import { expect, onTestFinished, test } from 'vitest'
import { findObjectStorage } from '../../../../db/object-storage/index.ts'
import type { ObjectStorage as Store, TenantSettings } from '../../../../integrations/object-storage/control.ts'
import { openExchange, type StoreExchange, type StoreRequest } from '../../../../kit/s3/exchange.ts'
import { openS3 } from '../../../../integrations/object-storage/s3.ts'
import { systemClock } from '../../../../kit/sys/clock.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { ObjectStorage } from '../../../../resources/object-storage/index.ts'
import { createAccount } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { startRealObjectStorage } from '../../../real-object-storage.ts'
import { openCloud, ZONE } from '../../cloud.ts'

const database = useDatabase()
/** Of the client's objects, which it writes again and again. */
const KEYS = 30
/** Fewer than what leads through a whole phase, and to the end of each step. */
const WRITES_MAXIMUM = 5
const NAME = 'mine'

interface RealStore {
  readonly url: string
  readonly authority: string
  /** As controllers use it; `strike` is awaited behind each change. */
  open(strike: () => Promise<void>): Store
  /** What was written of the tenant last. */
  settings(): TenantSettings | undefined
}

async function startStore(backend: Store['backend']): Promise<RealStore> {
  const { url, authority, control, stop } = await startRealObjectStorage()
  onTestFinished(stop)
  let written: TenantSettings | undefined
  return {
    url,
    authority,
    settings: () => written,
    open: (strike) => ({
      backend,
      zones: [ZONE],
      takesArchives: false,
      durability: 'single_copy',
      certificateAuthority: authority,
      endpointOf: () => url,
      upstreamOf: () => ({ url, authority }),
      openS3: (_zone, credentials) =>
        openS3(mortal(openExchange({ url, authority, credentials, clock: systemClock }), strike)),
      control: {
        getTenant: control.getTenant,
        async putTenant(id, settings) {
          await control.putTenant(id, settings)
          written = settings
          await strike()
        },
        async removeTenant(id, isPurged) {
          const isGone = await control.removeTenant(id, isPurged)
          await strike()
          return isGone
        },
      },
    }),
  }
}

/** Whoever changes something by it may die behind the first change, so that a pass over many objects comes to its end
 *  at last. */
function mortal(exchange: StoreExchange, strike: () => Promise<void>): StoreExchange {
  let isStruck = false
  const struck = async <Answer>({ method }: StoreRequest, answer: Answer): Promise<Answer> => {
    if (method === 'GET' || method === 'HEAD' || isStruck) return answer
    isStruck = true
    await strike()
    return answer
  }
  return {
    ask: async (request, signal) => struck(request, await exchange.ask(request, signal)),
    askWhole: async (request, milliseconds) => struck(request, await exchange.askWhole(request, milliseconds)),
  }
}

/** Writes its objects one after the other until it is stopped, and knows what each may be. */
function startClient(exchange: StoreExchange, bucket: string) {
  const may = new Map<string, ReadonlySet<string>>()
  let [turn, acknowledged, isOver] = [0, 0, false]
  const write = async (): Promise<void> => {
    const [key, content] = [`k${turn % KEYS}`, `content ${turn}`]
    turn += 1
    const body = Buffer.from(content)
    const answer = await exchange.askWhole({ method: 'PUT', path: `${bucket}/${key}`, body }).catch(() => undefined)
    if (answer?.status === 200) {
      may.set(key, new Set([content]))
      acknowledged += 1
    } else if (answer?.status !== 503) may.set(key, new Set([...(may.get(key) ?? []), content]))
  }
  const ended = (async () => {
    while (!isOver) await write()
  })()
  return {
    may,
    acknowledged: () => acknowledged,
    async stop() {
      isOver = true
      await ended
    },
  }
}

const PHASES = ['prepared', 'live', 'frozen', 'exact', 'prune', 'check', 'verified']

test('controllers that are killed in every phase of a move lose no object that was acknowledged', async () => {
  const [single, gateway] = [await startStore('svc-s3-single'), await startStore('rgw')]
  const cloud = await openCloud(database.db)
  onTestFinished(() => cloud.close())
  const accountId = await createAccount(database.db)
  const namespace = accountNamespace(accountId)
  await cloud.openAccount(accountId)
  const row = () => findObjectStorage(database.db, accountId, NAME)
  const read = () => cloud.kubectl.get(ObjectStorage, { namespace, name: NAME })
  const phase = async () => {
    const { backend, move } = (await row()) ?? {}
    return backend === 'rgw' ? 'switched' : (move?.phase ?? 'prepared')
  }

  await cloud.kubectl.create(ObjectStorage, { metadata: { name: NAME, namespace }, spec: { zone: ZONE } })
  const stop = cloud.startControllers(undefined, { objectStores: (strike) => [single.open(strike)] })
  await expect
    .poll(async () => (await read())?.status?.conditions?.find(({ type }) => type === 'Ready')?.reason)
    .toBe('Served')
  await stop()
  const { accessKeyId = '', secretAccessKey = '', bucketPrefix = '' } = single.settings() ?? {}
  const credentials = { accessKeyId, secretAccessKey }
  const { url, authority } = single
  const exchange = openExchange({ url, authority, credentials, clock: systemClock })
  const bucket = `${bucketPrefix}one`
  expect(await exchange.askWhole({ method: 'PUT', path: bucket })).toMatchObject({ status: 200 })
  const client = startClient(exchange, bucket)
  onTestFinished(() => client.stop())
  await expect.poll(() => client.acknowledged()).toBeGreaterThan(KEYS)

  const [requestedAt, deadlineAt] = [0, 7].map((days) => new Date(Date.now() + days * 86_400_000).toISOString())
  const stanza = { kind: 'object_storage.migrate', actor: 'user:ada', requestId: 'r', requestedAt, deadlineAt }
  await cloud.kubectl.patch(
    ObjectStorage,
    { namespace, name: NAME },
    { spec: { operation: { id: newUuid(systemRandom), ...stanza } } },
  )
  const deaths = new Map<string, number>()
  while ((await phase()) !== 'switched') {
    // One write more in each life that begins in the same phase. None leads into the next phase and through it.
    const begun = await phase()
    const writesMaximum = Math.min(Math.max(1, deaths.get(begun) ?? 0), WRITES_MAXIMUM)
    const died = Promise.withResolvers<void>()
    cloud.startControllers(
      { writesMaximum, onDeath: died.resolve, isOver: async () => (await phase()) !== begun },
      { objectStores: (strike) => [single.open(strike), gateway.open(strike)] },
    )
    await died.promise
    const at = await phase()
    deaths.set(at, (deaths.get(at) ?? 0) + 1)
  }
  const before = client.acknowledged()
  const both = () => [single.open(async () => {}), gateway.open(async () => {})]
  cloud.startControllers(undefined, { objectStores: both })
  await expect.poll(async () => (await read())?.status?.operation?.status).toBe('succeeded')
  await expect.poll(() => client.acknowledged()).toBeGreaterThan(before + KEYS)
  await client.stop()
  const moved = openExchange({ url: gateway.url, authority: gateway.authority, credentials, clock: systemClock })
  for (const [key, contents] of client.may) {
    const path = `${bucket}/${key}`
    const { text } = await moved.askWhole({ method: 'GET', path })
    expect(contents, key).toContain(text)
  }
  expect(client.may.size).toBe(KEYS)
  for (const name of PHASES) expect(deaths.get(name), name).toBeGreaterThan(0)
}, 180_000)
