/** The beginning of an exchange of root disks, and what a lost host leaves of one, on the embedded Kubernetes API. */
import { beforeAll, expect, test } from 'vitest'
import { beginExchange, spareDisksOf } from '../../../../controllers/nouns/database/disk-exchange.ts'
import { machineName } from '../../../../controllers/nouns/managed-machine/index.ts'
import type { Parts } from '../../../../controllers/kit/parts.ts'
import { ADMIN, openCore } from '../../../../embedded/kubernetes/core/core.ts'
import { memoryStorage } from '../../../../embedded/kubernetes/storage/memory.ts'
import { openClient } from '../../../../kit/kube/client.ts'
import { crds } from '../../../../controllers/kit/crds.ts'
import { installCrds } from '../../../../kit/kube/crd.ts'
import { Namespace } from '../../../../kit/kube/object.ts'
import type { Store } from '../../../../kit/kube/store.ts'
import { systemClock } from '../../../../kit/sys/clock.ts'
import { silentLog } from '../../../../kit/sys/log.ts'
import { systemRandom } from '../../../../kit/sys/random.ts'
import { Server, type ServerSpec } from '../../../../resources/server/index.ts'
import { Storage } from '../../../../resources/storage/index.ts'

const clock = systemClock
const NAMESPACE = 'acct-a'
const KEY = { namespace: NAMESPACE, name: machineName({ uid: 'u' }, 'primary') }
let store: Store

beforeAll(async () => {
  const core = await openCore({ clock, random: systemRandom, log: silentLog, storage: memoryStorage() })
  const transport = (request: Parameters<typeof core.handle>[0]) => core.handle(request, ADMIN)
  store = openClient({ transport, fieldManager: 'tests', clock, random: systemRandom })
  await installCrds(store, crds(), clock)
  await store.create(Namespace, { metadata: { name: NAMESPACE }, spec: undefined })
  const spec = { hostname: 'db', zone: 'z', plan: 'p', template: 'managed-database', desiredPower: 'running' }
  const bare = { ...spec, managedBy: 'database:db' } as unknown as ServerSpec // the API server fills in the defaults
  await store.create(Server, { metadata: KEY, spec: bare })
})

const operationNow = async () => (await store.get(Server, KEY))?.spec.operation
const finish = async (status: 'succeeded' | 'failed') => {
  const {
    id = '',
    kind = 'server.rebuild',
    requestedAt = '',
    deadlineAt = '',
    actor = '',
  } = (await operationNow()) ?? {}
  const over = { finishedAt: clock.now().toISOString(), step: 'started', stepIndex: 4, stepCount: 4, error: '' }
  const operation = { id, kind, status, actor, createdAt: requestedAt, deadlineAt, ...over }
  await store.patch(Server, KEY, { status: { state: 'started', operation } }, 'status')
}
const disk = (name: string, isBoot = true) =>
  store.create(Storage, {
    metadata: { namespace: NAMESPACE, name },
    spec: Storage.spec.parse({ zone: 'z', sizeGibibytes: 3, isBoot, serverId: KEY.name }),
  })
const spare = async () => {
  const { items } = await store.list(Storage, { namespace: NAMESPACE })
  const caches = { of: () => ({ inNamespace: () => items }) } as unknown as Parts['caches'] // all that is read of them
  return (await spareDisksOf({ caches, store }, { namespace: NAMESPACE, uid: 'u' })).map(({ name }) => name)
}

test('an exchange is an operation of the server, and never replaces a running one', async () => {
  await beginExchange({ store, clock }, KEY, '2')
  const first = await operationNow()
  expect(first).toMatchObject({
    kind: 'server.rebuild',
    actor: 'system:controllers',
    arguments: { image_version: '2', previous_boot_storage: KEY.name, previous_template: 'managed-database' },
  })
  await beginExchange({ store, clock }, KEY, '3')
  expect(await operationNow()).toEqual(first)
})

test('no disk is spare while it runs; afterwards it is the one that the machine does not boot from', async () => {
  await Promise.all([disk(KEY.name), disk('op-1'), disk('data', false)])
  expect(await spare()).toEqual([])
  await finish('failed')
  expect(await spare()).toEqual(['op-1'])
})

test('what the operation before went back for does not count for the next', async () => {
  await store.patch(Server, KEY, { spec: { operation: { arguments: { gone_back: 'Why.' } } } })
  await finish('failed')
  await beginExchange({ store, clock }, KEY, '3')
  expect((await operationNow())?.arguments).toEqual({
    image_version: '3',
    previous_boot_storage: KEY.name,
    previous_template: 'managed-database',
  })
  await beginExchange({ store, clock }, { namespace: NAMESPACE, name: 'gone' }, '3')
})
