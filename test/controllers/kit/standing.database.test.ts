/** What people write past admission is claimed only for accounts that may make what costs; what requests began, and
 *  what the platform does by itself, was judged before. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openSweepRate } from '../../../controllers/kit/sweep-rate.ts'
import { CONTROLLERS } from '../../../controllers/index.ts'
import type { Parts } from '../../../controllers/kit/parts.ts'
import { takeQuotas } from '../../../db/account/index.ts'
import { openCaches } from '../../../kit/kube/caches.ts'
import type { ResourceType } from '../../../kit/kube/object.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { openRegistry } from '../../../kit/sys/metrics.ts'
import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { Backup } from '../../../resources/backup/index.ts'
import { CustomImage } from '../../../resources/custom-image/index.ts'
import { Edge } from '../../../resources/edge/index.ts'
import { FloatingIp } from '../../../resources/floating-ip/index.ts'
import { accountNamespace } from '../../../resources/index.ts'
import { LoadBalancer } from '../../../resources/load-balancer/index.ts'
import { Router } from '../../../resources/router/index.ts'
import { Server, type ServerSpec } from '../../../resources/server/index.ts'
import { Snapshot } from '../../../resources/snapshot/index.ts'
import { Storage } from '../../../resources/storage/index.ts'
import type { OperationStanza } from '../../../resources/kit/shapes.ts'
import { createAccount } from '../../accounts.ts'
import { useDatabase } from '../../database.ts'
import { type Cloud, fastClock, openCloud, ZONE } from '../cloud.ts'
import { until } from '../until.ts'

const database = useDatabase()
let cloud: Cloud
let options: Parts

beforeAll(async () => {
  cloud = await openCloud(database.db)
  const clockwork = {
    clock: fastClock,
    random: systemRandom,
    log: silentLog,
    sweepRate: openSweepRate(fastClock),
  }
  const caches = openCaches({ store: cloud.kubectl, ...clockwork, registry: openRegistry({ isProcessWide: false }) })
  options = { store: cloud.kubectl, caches, db: database.db, ovn: cloud.ovn, ...clockwork }
})
afterAll(() => cloud.close())

const SERVER = { hostname: 'web', zone: ZONE, plan: 'tiny', template: 'tiny-linux', desiredPower: 'stopped' }
const DISK = { zone: ZONE, sizeGibibytes: 1 }
const ROOM = { cores: 1, memoryMebibytes: 192, storageGibibytes: 1 }

type Sold = readonly [type: ResourceType, effect: string, kind: string, spec: object, demand: object]

/** What costs: the effect that claims it, the object, and what is claimed besides its id. */
const SOLD: readonly Sold[] = [
  [Server, 'claim', 'server.create', SERVER, { serverId: 'web', hostname: 'web', zone: ZONE, ...ROOM }],
  [Server, 'resize', 'server.change_plan', SERVER, { serverId: 'web', operationId: newUuid(systemRandom), ...ROOM }],
  [Storage, 'claim', 'storage.create', DISK, { change: 'create' }],
  [Storage, 'claim', 'storage.resize', DISK, { change: 'resize' }],
  [Snapshot, 'claim', 'snapshot.create', { storageId: 'disk' }, { snapshotId: 'web', storageId: 'disk' }],
  [Backup, 'claim', 'storage.backup', { storageId: 'disk' }, { backupId: 'web' }],
  [
    CustomImage,
    'claim',
    'template.create',
    { zone: ZONE, title: 'x', source: { storageId: 'disk' } },
    { imageId: 'web' },
  ],
  [FloatingIp, 'claim', 'floating_ip.sync', { zone: ZONE }, { change: 'allocate' }],
  [Router, 'claim', 'router.sync', { zone: ZONE, name: 'out', natEnabled: true, networkIds: [] }, { change: 'create' }],
  [
    Edge,
    'claim',
    'edge.sync',
    { zone: ZONE, networkId: 'back', name: 'e', roles: ['bastion'], plan: 'tiny' },
    { edgeId: 'web', networkId: 'back', granted: { plan: 'tiny', machines: ['combined'] } },
  ],
  [
    LoadBalancer,
    'claim',
    'load_balancer.create',
    { zone: ZONE, networkId: 'back', name: 'web', plan: 'tiny', publicIpv4: true },
    { change: 'create' },
  ],
]

/** What the effect answers for an object whose operation was begun so. */
async function outcomeOf(
  [type, effect, kind, spec, demand]: Sold,
  accountId: string,
  by: Pick<OperationStanza, 'actor' | 'requestId'>,
  rules: Pick<Parts, 'areAddressesConfirmed'> = {},
): Promise<string | undefined> {
  const namespace = accountNamespace(accountId)
  const id = newUuid(systemRandom)
  const operation = {
    id,
    kind,
    ...by,
    requestId: by.requestId === '' ? id : by.requestId,
    requestedAt: '2026-01-01T00:00:00Z',
    deadlineAt: '2036-01-01T00:00:00Z',
  }
  const registration = CONTROLLERS.find(({ resource }) => resource.kind === type.kind)
  const controller = registration?.open({ ...options, ...rules } as never) // claims need no more
  const metadata = { namespace, name: 'web', labels: { a: id }, finalizers: ['example.com/stays'] }
  const object = await cloud.kubectl.create(type, { metadata, spec: { ...spec, operation } })
  // What it claims beyond the account's standing may be refused for other reasons, or fail.
  const report = await controller?.effects?.[effect]?.({ accountId, ...demand }, object).catch(() => undefined)
  await cloud.kubectl.patch(type, { namespace, name: 'web' }, { metadata: { finalizers: [] } })
  await cloud.kubectl.delete(type, { namespace, name: 'web' }).catch(() => {})
  return report?.conditions?.map(({ reason }) => reason).join()
}

const EDIT = { actor: 'user:grace', requestId: '' }
const open = async (isInGoodStanding: boolean): Promise<string> => {
  const accountId = await createAccount(database.db)
  await cloud.openAccount(accountId)
  if (!isInGoodStanding) await database.db.deleteFrom('credit').where('account_id', '=', accountId).execute()
  return accountId
}

describe.each(SOLD.map((sold) => [sold[0].kind, sold[1], sold] as const))('%s, %s', (_kind, _effect, sold) => {
  const outcome = (accountId: string, by = EDIT) => outcomeOf(sold, accountId, by)

  test('is refused to an edit while nobody would pay, or the account is suspended', async () => {
    const accountId = await open(false)
    expect(await outcome(accountId)).toBe('PaymentMethodRequired')
    const at = new Date('2026-01-02T00:00:00Z')
    for (const suspended of ['suspended_for_payment_at', 'suspended_by_staff_at'] as const) {
      await database.db
        .updateTable('account')
        .set({ [suspended]: at })
        .where('id', '=', accountId)
        .execute()
      expect(await outcome(accountId)).toBe('AccountSuspended')
      await database.db
        .updateTable('account')
        .set({ [suspended]: null })
        .where('id', '=', accountId)
        .execute()
    }
  })

  test('continues when a request or the platform started it', async () => {
    const accountId = await open(false)
    const others = [
      { actor: 'user:grace', requestId: newUuid(systemRandom) },
      { actor: 'system:controllers', requestId: '' },
    ]
    for (const by of others) expect(await outcome(accountId, by)).not.toBe('PaymentMethodRequired')
  })

  test('is judged no further for an account that may make it', async () => {
    expect(await outcome(await open(true))).not.toBe('PaymentMethodRequired')
  })
})

test('a server is a machine only of what the account has been granted, though nobody pays', async () => {
  const accountId = await open(false)
  const [server] = SOLD
  if (server === undefined) throw new Error('no server')
  const machineOf = (managedBy: string): Promise<string | undefined> => {
    const [type, effect, kind, spec, demand] = server
    return outcomeOf([type, effect, kind, { ...spec, managedBy }, demand], accountId, {
      actor: 'system:controllers',
      requestId: '',
    })
  }
  expect(await machineOf('edge:web')).toBe('StateNotAllowed')
  const stranger = await open(true)
  const grant = (id: string) =>
    database.db
      .transaction()
      .execute((tx) => takeQuotas(tx, { accountId: id, holder: 'edge/web', amounts: { edges: 1 } }))
  await grant(stranger)
  expect(await machineOf('edge:web')).toBe('StateNotAllowed')
  await grant(accountId)
  expect(await machineOf('load_balancer:web')).toBe('StateNotAllowed')
  expect(await machineOf('edge:web')).not.toBe('StateNotAllowed')
})

test('a router without NAT costs nothing more and can be rearranged by an account that is suspended', async () => {
  const accountId = await open(true)
  const [router] = SOLD.filter(([type]) => type === Router)
  if (router === undefined) throw new Error('no router')
  const [type, effect, kind, spec, demand] = router
  const without = { ...spec, natEnabled: false }
  expect(await outcomeOf([type, effect, kind, without, demand], accountId, EDIT)).toBe('Claimed')
  await database.db.deleteFrom('credit').where('account_id', '=', accountId).execute()
  expect(await outcomeOf([type, effect, kind, without, { change: 'configure' }], accountId, EDIT)).toBe('Claimed')
  const refused = await outcomeOf([type, effect, kind, spec, { change: 'enable_nat' }], accountId, EDIT)
  expect(refused).toBe('PaymentMethodRequired')
})

test('a server of an account that may make nothing never gets a host, and what runs is not stopped', async () => {
  const accountId = await open(true)
  const namespace = accountNamespace(accountId)
  const [stopAgent, stopControllers] = [cloud.startAgent(), cloud.startControllers()]
  const create = (name: string) =>
    cloud.kubectl.create(Server, {
      metadata: { namespace, name },
      spec: { ...SERVER, hostname: name, desiredPower: 'running' } as unknown as ServerSpec, // the rest has defaults
    })
  const order = (desiredPower: ServerSpec['desiredPower']) =>
    cloud.kubectl.patch(Server, { namespace, name: 'old' }, { spec: { desiredPower } })
  const inState = (name: string, state: string) =>
    until(
      `${name} ${state}`,
      async () => (await cloud.kubectl.get(Server, { namespace, name }))?.status,
      (status) => status?.state === state && status.operation?.finishedAt !== undefined,
    )
  await create('old')
  await inState('old', 'started')
  const suspension = { suspended_by_staff_at: new Date('2026-01-02T00:00:00Z') }
  await database.db.updateTable('account').set(suspension).where('id', '=', accountId).execute()
  await create('new')
  expect((await inState('new', 'error'))?.stateDetail).toContain('suspended')
  await order('stopped')
  await inState('old', 'stopped')
  await order('running')
  await inState('old', 'started')
  await stopControllers()
  await stopAgent()
})

test('without a verified owner an edit is refused, but where the deployment can send no mail', async () => {
  const accountId = await open(true)
  await database.db
    .updateTable('app_user')
    .set({ email_verified_at: null })
    .where('own_account_id', '=', accountId)
    .execute()
  const [claim] = SOLD
  if (claim === undefined) throw new Error('nothing costs')
  expect(await outcomeOf(claim, accountId, EDIT)).toBe('EmailUnverified')
  expect(await outcomeOf(claim, accountId, EDIT, { areAddressesConfirmed: true })).not.toBe('EmailUnverified')
})
