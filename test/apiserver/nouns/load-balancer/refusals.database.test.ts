/** What REST and kubectl are refused of load balancers, with the sentence. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { mirrorPool } from '../../../../db/public-pool/index.ts'
import type { KubeObject } from '../../../../kit/kube/object.ts'
import { finalizerOf } from '../../../../resources/kit/define.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { LoadBalancer, type LoadBalancerSpec } from '../../../../resources/load-balancer/index.ts'
import { Network } from '../../../../resources/network/index.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud, type Person } from '../../cloud.ts'
import { admissions, BUSY, lackingZones, naming, refusals } from '../../refusals.ts'

const database = useDatabase()
let cloud: Cloud
let owner: Person
let namespace: string
const ids: Record<string, string> = {}

const BACKEND = { name: 'web', members: [{ name: 'one', address: '10.9.0.10', port: 8080 }] }
const FRONTEND = { name: 'web', port: 80, mode: 'http', backend: 'web' }
const CERTIFICATE = { id: 'c', name: 'c', dnsNames: [], notBefore: '', notAfter: '', fingerprint: '' }
const CONFIGURATION = { frontends: [FRONTEND], backends: [BACKEND] }

async function make(name: string, more: object): Promise<void> {
  const body = naming(ids).body({ zone: cloud.zone, name, network_id: 'back', ...CONFIGURATION, ...more })
  const reply = await owner.send('POST', '/v1/load-balancers', { body })
  expect(reply.status, JSON.stringify(reply.body)).toBe(202)
  ids[name] = reply.body['load_balancer'].id
}

beforeAll(async () => {
  cloud = await openCloud(database.db)
  owner = await cloud.signUp('owner@example.com')
  namespace = accountNamespace(owner.accountId)
  await lackingZones(cloud)
  await database.db.updateTable('account_quota').set({ limit: 1_000_000 }).execute()
  const pool = { family: 'ipv4', zone: cloud.zone, state: 'active', use: 'server_ipv4' } as const
  await database.db.transaction().execute((tx) => mirrorPool(tx, { ...pool, id: 'servers', cidr: '198.51.100.0/26' }))
  const body = { zone: cloud.zone, name: 'back', ipv4_cidr: '10.9.0.0/24' }
  const { network } = (await owner.send('POST', '/v1/networks', { body })).body as Record<
    'network',
    Record<string, string>
  >
  ids['back'] = network['id'] ?? ''
  const ranges = { ipv4Cidr: '10.9.0.0/24', ipv6Prefix: network['ipv6_prefix'] ?? '' }
  const networks = cloud.caches.of(Network)
  networks.apply(await cloud.admin.patch(Network, { namespace, name: ids['back'] }, { status: ranges }, 'status'))
  const spec = Network.spec.parse({ zone: cloud.zone, name: 'fresh' })
  networks.apply(await cloud.admin.create(Network, { metadata: { namespace, name: 'fresh' }, spec }))
  await make('out', {})
  await make('other', {})
  await make('kept', {})
  await make('leaving', {})
  expect(
    (await owner.send('PATCH', `/v1/load-balancers/${ids['kept']}`, { body: { is_protected: true } })).status,
  ).toBe(200)
  expect((await owner.send('DELETE', `/v1/load-balancers/${ids['leaving']}`)).status).toBe(202)
})
afterAll(() => cloud.close())

const member = (address: string) => ({ backends: [{ ...BACKEND, members: [{ name: 'a', address, port: 1 }] }] })

test('a load balancer is not made, changed or deleted over REST', async () => {
  const all = '/v1/load-balancers'
  const out = `${all}/:out`
  const make = (what: string, body: object) =>
    [
      `made ${what}`,
      'POST',
      all,
      { zone: cloud.zone, name: 'new', network_id: 'back', ...CONFIGURATION, ...body },
    ] as const
  expect(
    await refusals(owner, ids, [
      make('in a zone that is not there', { zone: 'nowhere' }),
      make('in a zone without networks', { zone: 'bare' }),
      make('in a zone without images', { zone: 'imageless' }),
      make('in a closed zone', { zone: 'closed' }),
      make('in a network that is not there', { network_id: 'nothing' }),
      make('in a network without ranges', { network_id: 'fresh' }),
      make('with a plan that is not there', { plan: 'nothing' }),
      make('with a plan that is too small', { plan: 'tiny' }),
      make('with a member outside', member('10.8.0.1')),
      make('with a frontend of no backend', { backends: [] }),
      make('with https and no certificate', { frontends: [{ ...FRONTEND, mode: 'https' }] }),
      make('with the name of another', { name: 'out' }),
      ['changed where it is not there', 'PATCH', `${all}/nothing`, { name: 'a' }],
      ['named as another', 'PATCH', out, { name: 'other' }],
      ['named while it is deleted', 'PATCH', `${all}/:leaving`, { name: 'a' }],
      [
        'configured as another generation',
        'PUT',
        `${out}/configuration`,
        { ...CONFIGURATION, configuration_generation: 9 },
      ],
      ['configured with a member outside', 'PUT', `${out}/configuration`, { ...CONFIGURATION, ...member('10.8.0.1') }],
      ['configured while it is deleted', 'PUT', `${all}/:leaving/configuration`, CONFIGURATION],
      [
        'given a member of no backend',
        'POST',
        `${out}/backends/none/members`,
        { name: 'b', address: '10.9.0.9', port: 1 },
      ],
      ['given a member twice', 'POST', `${out}/backends/web/members`, { name: 'one', address: '10.9.0.9', port: 1 }],
      ['given a member outside', 'POST', `${out}/backends/web/members`, { name: 'b', address: '10.8.0.1', port: 1 }],
      ['changed in a member that is not there', 'PATCH', `${out}/backends/web/members/none`, { weight: 1 }],
      ['parted from a member that is not there', 'DELETE', `${out}/backends/web/members/none`],
      ['parted from a certificate that is not there', 'DELETE', `${out}/certificates/none`],
      ['deleted while it is protected', 'DELETE', `${all}/:kept`],
      ['deleted while it is deleted', 'DELETE', `${all}/:leaving`],
    ]),
  ).toEqual([
    'made in a zone that is not there: 400 (zone) zone: there is no zone nowhere; there are bare, ' +
      'closed, eu-1-a, imageless',
    'made in a zone without networks: 409 zone_capability_missing The zone bare has no private ' +
      'networks: none of its hosts answers yet.',
    'made in a zone without images: 409 zone_capability_missing The zone imageless has no load ' +
      'balancers: its hosts have no image for their machines. An operator brings it by `sudo npm run image:managed`.',
    'made in a closed zone: 503 no_capacity The zone takes nothing new.',
    'made in a network that is not there: 404 No such network.',
    'made in a network without ranges: 409 state_not_allowed The network is still being made.',
    'made with a plan that is not there: 400 (plan) plan: there is no plan nothing; there are ' +
      'premium-4c-8g, starter-1c-1g, starter-2c-4g, tiny',
    'made with a plan that is too small: 400 (plan) plan: its machines need 256 MiB of memory',
    'made with a member outside: 400 (backends.0.members.0.address) backends.0.members.0.address: ' +
      'is outside the network of the load balancer, 10.9.0.0/24',
    'made with a frontend of no backend: 400 (frontends.0.backend) frontends.0.backend: is the name of no backend',
    'made with https and no certificate: 400 (frontends.0.certificate_ids) ' +
      'frontends.0.certificate_ids: https needs at least one certificate',
    'made with the name of another: 409 name_taken The account has a load balancer of this name in zone eu-1-a.',
    'changed where it is not there: 404 No such load balancer.',
    'named as another: 409 name_taken The account has a load balancer of this name in zone eu-1-a.',
    `named while it is deleted: 409 operation_in_progress ${BUSY}`,
    'configured as another generation: 409 state_not_allowed The configuration is at generation 1, ' +
      'not 9: somebody has changed it. Read it, and make the change to what it is now.',
    'configured with a member outside: 400 (backends.0.members.0.address) ' +
      'backends.0.members.0.address: is outside the network of the load balancer, 10.9.0.0/24',
    `configured while it is deleted: 409 operation_in_progress ${BUSY}`,
    'given a member of no backend: 404 No such backend.',
    'given a member twice: 409 name_taken The backend web has a member of this name.',
    'given a member outside: 400 (backends.0.members.1.address) backends.0.members.1.address: is ' +
      'outside the network of the load balancer, 10.9.0.0/24',
    'changed in a member that is not there: 404 No such member.',
    'parted from a member that is not there: 404 No such member.',
    'parted from a certificate that is not there: 404 No such certificate.',
    'deleted while it is protected: 409 protected The load balancer is protected. Lift the ' +
      'protection, then delete it.',
    `deleted while it is deleted: 409 operation_in_progress ${BUSY}`,
  ])
})

test('a load balancer is not made, changed or deleted by kubectl', async () => {
  const parsed = (more: object): LoadBalancerSpec =>
    LoadBalancer.spec.parse({
      zone: cloud.zone,
      name: 'new',
      networkId: ids['back'],
      plan: 'starter-1c-1g',
      ...CONFIGURATION,
      ...more,
    })
  const object = (spec: LoadBalancerSpec, more: object = {}): KubeObject<LoadBalancerSpec> => ({
    apiVersion: 'svccloud.dev/v1alpha1',
    kind: 'LoadBalancer',
    spec,
    metadata: { namespace, name: 'new', ...more },
  })
  const make = (what: string, more: object) => [`made ${what}`, object(parsed(more))] as const
  const stored = async (name: string) => {
    const found = await cloud.admin.get(LoadBalancer, { namespace, name: ids[name] ?? '' })
    if (found === undefined) throw new Error(`there is no ${name}`)
    return found
  }
  const [out, kept, leaving] = [await stored('out'), await stored('kept'), await stored('leaving')]
  const change = (what: string, more: object, before = out) =>
    [what, { ...before, spec: LoadBalancer.spec.parse({ ...before.spec, ...more }) }, before] as const
  expect(
    await admissions(cloud, LoadBalancer, [
      make('well', { name: 'unused' }),
      make('before its network', { networkId: 'later' }),
      make('in a network without ranges', { networkId: 'fresh' }),
      make('in a zone that is not there', { zone: 'nowhere' }),
      make('in a zone without networks', { zone: 'bare' }),
      make('in a zone without images', { zone: 'imageless' }),
      make('in a closed zone', { zone: 'closed' }),
      make('with a plan that is not there', { plan: 'nothing' }),
      make('with a plan that is too small', { plan: 'tiny' }),
      make('with a member outside', member('10.8.0.1')),
      make('with the name of another', { name: 'out' }),
      make('with a name that nobody can read', { name: 'a\u0007' }),
      make('with a bad label', { labels: { 'a b': '' } }),
      make('with certificates', { certificates: [{ ...CERTIFICATE }] }),
      make('with a number', { numbered: { generation: 2, digest: '' } }),
      make('as a part of an edge', { managedBy: 'edge:x' }),
      ['made with a finalizer of another', object(parsed({}), { finalizers: [finalizerOf(LoadBalancer)] })],
      change('changed in nothing', {}),
      change('named as another', { name: 'other' }),
      change('named, labelled and protected', { name: 'renamed', labels: { a: 'b' }, isProtected: true }),
      change('configured', { frontends: [] }),
      change('configured and named', { frontends: [], name: 'renamed' }),
      change('configured with a member outside', member('10.8.0.1')),
      change('given certificates', { certificates: [{ ...CERTIFICATE }] }),
      change('given a number', { numbered: { generation: 9, digest: '' } }),
      change('moved', { zone: 'bare' }),
      change('given another plan', { plan: 'tiny' }),
      change('named while it is deleted', { name: 'renamed' }, leaving),
      change('configured while it is deleted', { frontends: [] }, leaving),
      ['left without its finalizer', { ...out, metadata: { ...out.metadata, finalizers: [] } }, out],
      ['deleted', undefined, out],
      ['deleted while it is protected', undefined, kept],
      ['deleted while it is deleted', undefined, leaving],
    ]),
  ).toEqual([
    'made well: is admitted as load_balancer.create',
    'made before its network: is admitted as load_balancer.create',
    'made in a network without ranges: is admitted as load_balancer.create',
    'made in a zone that is not there: 400 (spec.zone) spec.zone: there is no zone nowhere; there ' +
      'are bare, closed, eu-1-a, imageless',
    'made in a zone without networks: 409 zone_capability_missing The zone bare has no private ' +
      'networks: none of its hosts answers yet.',
    'made in a zone without images: 409 zone_capability_missing The zone imageless has no load ' +
      'balancers: its hosts have no image for their machines. An operator brings it by `sudo npm run image:managed`.',
    'made in a closed zone: 503 no_capacity The zone takes nothing new.',
    'made with a plan that is not there: 400 (spec.plan) spec.plan: there is no plan nothing; ' +
      'there are premium-4c-8g, starter-1c-1g, starter-2c-4g, tiny',
    'made with a plan that is too small: 400 (spec.plan) spec.plan: its machines need 256 MiB of memory',
    'made with a member outside: 400 (spec.backends.0.members.0.address) ' +
      'spec.backends.0.members.0.address: is outside the network of the load balancer, 10.9.0.0/24',
    'made with the name of another: 409 name_taken The account has a load balancer of this name in zone eu-1-a.',
    'made with a name that nobody can read: 400 (spec.name) spec.name: must be printable',
    'made with a bad label: 400 (spec.labels.a b) spec.labels.a b: Invalid key in record',
    'made with certificates: 403 spec.certificates is written by the platform only.',
    'made with a number: 403 spec.numbered is written by the platform only.',
    'made as a part of an edge: 403 spec.managedBy is written by the platform only.',
    'made with a finalizer of another: is admitted as load_balancer.create',
    'changed in nothing: is admitted as ',
    'named as another: 409 name_taken The account has a load balancer of this name in zone eu-1-a.',
    'named, labelled and protected: is admitted as load_balancer.update',
    'configured: is admitted as load_balancer.configure',
    'configured and named: is admitted as load_balancer.update, load_balancer.configure',
    'configured with a member outside: 400 (spec.backends.0.members.0.address) ' +
      'spec.backends.0.members.0.address: is outside the network of the load balancer, 10.9.0.0/24',
    'given certificates: 403 spec.certificates is written by the platform only.',
    'given a number: 403 spec.numbered is written by the platform only.',
    'moved: 400 (spec.zone) spec.zone: cannot be changed',
    'given another plan: 400 (spec.plan) spec.plan: cannot be changed',
    `named while it is deleted: 409 operation_in_progress ${BUSY}`,
    `configured while it is deleted: 409 operation_in_progress ${BUSY}`,
    'left without its finalizer: 403 The finalizer goes when nothing of the load balancer is left.',
    'deleted: is admitted as load_balancer.delete',
    'deleted while it is protected: 409 protected The load balancer is protected. Lift the ' +
      'protection, then delete it.',
    'deleted while it is deleted: is admitted as load_balancer.delete',
  ])
})
