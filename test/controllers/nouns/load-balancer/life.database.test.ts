/** The life of a load balancer with real controllers and a real database, with kubectl. The guests are played: no
 *  simulated host runs their programs. */
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { prefixOf } from '../../../../domain/public-pool/rules.ts'
import { MANAGED_TEMPLATE } from '../../../../domain/managed-machine/rules.ts'
import { listQuotas } from '../../../../db/account/index.ts'
import { listAudit } from '../../../../db/audit/index.ts'
import { type KubeObject, Secret } from '../../../../kit/kube/object.ts'
import { systemClock as clock } from '../../../../kit/sys/clock.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { LoadBalancer, type LoadBalancerSpec, numberOf } from '../../../../resources/load-balancer/index.ts'
import {
  MACHINE_DOCUMENT_KEY,
  MachineDocument,
  ManagedMachine,
  type ManagedMachineSpec,
  type ManagedMachineStatus,
} from '../../../../resources/managed-machine/index.ts'
import { Network, type NetworkSpec } from '../../../../resources/network/index.ts'
import { Server } from '../../../../resources/server/index.ts'
import { createAccount } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, ZONE } from '../../cloud.ts'
import { openNetworkedCloud } from '../../networked-cloud.ts'
import { until } from '../../until.ts'

const database = useDatabase()
let cloud: Cloud
let stop: () => Promise<void>
let accountId: string
let namespace: string

beforeAll(async () => {
  ;({ cloud, stop } = await openNetworkedCloud(database.db, {
    templates: [MANAGED_TEMPLATE],
    pools: { server_ipv4: '198.51.100.0/24', server_ipv6_prefix: '2001:db8::/48' },
  }))
  accountId = await createAccount(database.db)
  await cloud.openAccount(accountId)
  namespace = accountNamespace(accountId)
})
afterAll(() => stop())

const key = () => ({ namespace, name: 'web' })
const read = () => cloud.kubectl.get(LoadBalancer, key())
type MachineObject = KubeObject<ManagedMachineSpec, ManagedMachineStatus>
const machines = async (): Promise<readonly MachineObject[]> =>
  (await cloud.kubectl.list(ManagedMachine, {})).items.filter(({ spec }) => spec.managedBy === 'load_balancer:web')

/** Of what their hosts are to deliver. */
const fingerprints = (found: readonly MachineObject[]) =>
  found.map(({ spec: { configuration } }) => configuration?.fingerprint)

/** They have been well for long. */
const READY = {
  type: 'Ready',
  status: 'True' as const,
  reason: 'Healthy',
  message: '',
  lastTransitionTime: '2020-01-01T00:00:00Z',
}

/** The guests say that they run what was delivered. */
async function answer(): Promise<void> {
  for (const { metadata, spec } of await machines()) {
    if (spec.configuration === undefined) continue
    const { generation, fingerprint } = spec.configuration
    const status = { running: { generation, fingerprint }, isHealthy: true, detail: '', conditions: [READY] }
    const at = { namespace: metadata.namespace ?? '', name: metadata.name }
    await cloud.kubectl.patch(ManagedMachine, at, { status }, 'status')
  }
}

const applied = () =>
  until(
    'the configuration on both machines',
    async () => {
      await answer()
      return read()
    },
    (found) => found?.status?.isHealthy === true && found.status.applied?.digest === numberOf(found.spec).digest,
  )

test('it is made of two machines, follows its spec, and leaves nothing', { timeout: 180_000 }, async () => {
  const example = parse(await readFile('examples/load-balancers/load-balancer.yaml', 'utf8'))
  const spec = { ...example.spec, zone: ZONE, plan: 'tiny' } as LoadBalancerSpec
  const { metadata: own } = await cloud.kubectl.create(LoadBalancer, { metadata: key(), spec })
  await until(
    'what it waits for',
    async () => (await read())?.status?.operation?.step,
    (step) => step === 'claimed',
  )
  const back = { zone: ZONE, name: 'back', ipv4Cidr: '10.1.0.0/24' } as NetworkSpec
  await cloud.kubectl.create(Network, { metadata: { namespace, name: 'back' }, spec: back })
  await until(
    'documents',
    machines,
    (found) => found.filter(({ spec: { configuration } }) => configuration).length === 2,
  )
  const made = await applied()
  expect(made?.status).toMatchObject({
    privateIpv4: expect.stringMatching(/^10\.1\.0\./),
    publicIpv4: expect.stringMatching(/^198\.51\.100\./),
    publicIpv6: expect.stringMatching(/^2001:db8:/),
    isHealthy: true,
  })
  const { publicIpv6 = '' } = made?.status ?? {}
  const rows = () => cloud.ovn.owners.get(`${ZONE} LoadBalancer/${own.uid}`)
  expect(rows()?.map(({ columns }) => [columns['ip_prefix'], columns['nexthop']])).toEqual([
    [prefixOf(publicIpv6), publicIpv6],
  ])
  const servers = (await cloud.kubectl.list(Server, { namespace })).items
  expect(servers.map(({ status }) => status?.publicIpv6)).not.toContain(publicIpv6)
  expect(servers.map(({ spec: { managedBy, networks } }) => [managedBy, networks])).toEqual(
    Array.from({ length: 2 }, () => ['load_balancer:web', [{ networkId: 'back' }]]),
  )
  for (const { metadata, spec: machine } of await machines()) {
    const secret = { namespace: metadata.namespace ?? '', name: machine.configuration?.secretName ?? '' }
    const text = (await cloud.kubectl.get(Secret, secret))?.data?.[MACHINE_DOCUMENT_KEY] ?? ''
    const document = MachineDocument.parse(JSON.parse(Buffer.from(text, 'base64').toString()))
    expect(document.haproxy?.config).toContain('10.1.0.10:8080')
    expect(document.keepalived?.config).toContain(`${made?.status?.privateIpv4}/24`)
    expect(document.keepalived?.config).toContain(`${publicIpv6}/128`)
    const shared = servers.find(({ metadata: { uid } }) => uid === metadata.name)?.spec.sharedAddresses
    expect(shared?.map(({ address }) => address)).toContain(publicIpv6)
  }
  const before = fingerprints(await machines())
  await cloud.kubectl.patch(LoadBalancer, key(), { spec: { frontends: [] } })
  await until('the next documents', machines, (found) =>
    fingerprints(found).every((fingerprint) => !before.includes(fingerprint)),
  )
  await clock.sleep(500) // The guests do not say yet that they run it.
  const edited = await applied()
  // No change of a configuration costs a machine, however long it was well.
  const left = (await cloud.kubectl.list(Server, { namespace })).items.map(({ metadata: { uid } }) => uid)
  expect(left.sort()).toEqual(servers.map(({ metadata: { uid } }) => uid).sort())
  expect(edited?.status?.operation?.kind).toBe('load_balancer.create')
  await cloud.kubectl.delete(LoadBalancer, key())
  await until('its end', read, (found) => found === undefined)
  const remains = await Promise.all([
    database.db.selectFrom('load_balancer').select('id').execute(),
    database.db.selectFrom('shared_address').select('holder').execute(),
    database.db.selectFrom('public_address').select('address').where('holder', 'is not', null).execute(),
    // Their host releases those that are being deleted.
    machines().then((some) => some.filter(({ metadata }) => metadata.deletionTimestamp === undefined)),
    cloud.kubectl.list(Server, { namespace }).then(({ items }) => items),
  ])
  expect(remains).toEqual([[], [], [], [], []])
  expect(rows()).toBeUndefined()
  const quotas = (await listQuotas(database.db, accountId)).filter(({ used }) => used > 0).map(({ name }) => name)
  expect(quotas).toEqual(['networks'])
  const entries = (await listAudit(database.db, accountId, { limit: 20 })).map(({ action }) => action)
  expect(entries.filter((action) => action.startsWith('load_balancer.')).sort()).toEqual([
    'load_balancer.create',
    'load_balancer.delete',
  ])
})
