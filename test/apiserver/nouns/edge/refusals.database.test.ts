/** What REST and kubectl are refused of edges, with the sentence. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { mirrorPool } from '../../../../db/public-pool/index.ts'
import type { KubeObject } from '../../../../kit/kube/object.ts'
import { Edge, type EdgeSpec } from '../../../../resources/edge/index.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { Network } from '../../../../resources/network/index.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud, type Person, PUBLIC_KEY } from '../../cloud.ts'
import { admissions, BUSY, lackingZones, naming, refusals } from '../../refusals.ts'

const database = useDatabase()
let cloud: Cloud
let owner: Person
let namespace: string
const ids: Record<string, string> = {}

/** A network that the caches know. */
async function network(name: string, zone: string, status: object): Promise<void> {
  const made = await cloud.admin.create(Network, {
    metadata: { namespace, name },
    spec: Network.spec.parse({ zone, name }),
  })
  const patched = await cloud.admin.patch(Network, { namespace, name: made.metadata.name }, { status }, 'status')
  cloud.caches.of(Network).apply(patched)
}

async function make(name: string, more: object): Promise<void> {
  const body = { zone: cloud.zone, name: `of-${name}`, ipv4_cidr: '10.1.0.0/24' }
  ids[`of-${name}`] = (await owner.send('POST', '/v1/networks', { body })).body['network'].id
  const sent = naming(ids).body({ network_id: `of-${name}`, name, ...more })
  const reply = await owner.send('POST', '/v1/edges', { body: sent })
  expect(reply.status, JSON.stringify(reply.body)).toBe(202)
  ids[name] = reply.body['edge'].id
}

/** What its controller says when it has come about. */
async function finish(name: string): Promise<void> {
  const key = { namespace, name: ids[name] ?? '' }
  const operation = (await cloud.admin.get(Edge, key))?.spec.operation
  if (operation === undefined) throw new Error(`${name} has no operation`)
  const { id, kind, requestedAt, deadlineAt, actor } = operation
  const progress = { id, kind, actor, deadlineAt, createdAt: requestedAt, status: 'succeeded', error: '' }
  const ended = { ...progress, step: 'announced', stepIndex: 3, stepCount: 3 }
  await cloud.admin.patch(Edge, key, { status: { state: 'running', operation: ended } }, 'status')
}

beforeAll(async () => {
  cloud = await openCloud(database.db)
  owner = await cloud.signUp('owner@example.com')
  namespace = accountNamespace(owner.accountId)
  await lackingZones(cloud)
  await database.db.updateTable('account_quota').set({ limit: 1_000_000 }).execute()
  const pool = { family: 'ipv4', zone: cloud.zone, state: 'active', use: 'server_ipv4' } as const
  await database.db.transaction().execute((tx) => mirrorPool(tx, { ...pool, id: 'servers', cidr: '198.51.100.0/26' }))
  const key = await owner.send('POST', '/v1/ssh-keys', { body: { name: 'a', public_key: PUBLIC_KEY } })
  expect(key.status).toBe(201)
  await make('out', { roles: ['bastion', 'load_balancer'] })
  await make('gate', { roles: ['nat_gateway'] })
  await make('leaving', { roles: ['nat_gateway'] })
  for (const name of ['out', 'gate', 'leaving']) await finish(name)
  await make('busy', { roles: ['nat_gateway'] })
  expect((await owner.send('DELETE', `/v1/edges/${ids['leaving']}`)).status).toBe(202)
  const ranges = { ipv4Cidr: '10.1.0.0/24', ipv6Prefix: 'fd00:1::/64' }
  const free = { zone: cloud.zone, name: 'free', ipv4_cidr: '10.1.0.0/24' }
  ids['free'] = (await owner.send('POST', '/v1/networks', { body: free })).body['network'].id
  await network('fresh', cloud.zone, {})
  for (const zone of ['bare', 'closed', 'imageless']) await network(`in-${zone}`, zone, ranges)
  for (const name of ['free', 'of-out', 'of-gate'])
    cloud.caches
      .of(Network)
      .apply(await cloud.admin.patch(Network, { namespace, name: ids[name] ?? '' }, { status: ranges }, 'status'))
})
afterAll(() => cloud.close())

const member = (more: object = {}) => ({ name: 'web', frontend_port: 80, address: '10.1.0.10', port: 8080, ...more })
const stored = (more: object = {}) => ({ name: 'web', frontendPort: 80, address: '10.1.0.10', port: 8080, ...more })

test('an edge is not made, changed or deleted over REST', async () => {
  const all = '/v1/edges'
  const out = `${all}/:out`
  const make = (what: string, body: object) =>
    [`made ${what}`, 'POST', all, { network_id: 'free', roles: ['load_balancer'], ...body }] as const
  expect(
    await refusals(owner, ids, [
      make('for a network that is not there', { network_id: 'nothing' }),
      make('for a network with an edge', { network_id: 'of-out' }),
      make('in a zone without networks', { network_id: 'in-bare' }),
      make('in a zone without images', { network_id: 'in-imageless' }),
      make('in a closed zone', { network_id: 'in-closed' }),
      make('with a plan that is not there', { plan: 'nothing' }),
      make('with a plan that is too small', { plan: 'tiny' }),
      make('with separate machines', { placement: 'separate' }),
      make('with members and no load balancer', { roles: ['nat_gateway'], members: [member()] }),
      make('with a member elsewhere', { members: [member({ address: '10.2.0.1' })] }),
      make('with a port of the bastion', {
        roles: ['bastion', 'load_balancer'],
        members: [member({ frontend_port: 22 })],
      }),
      make('with a key that is not there', { roles: ['bastion'], ssh_key_ids: ['none'] }),
      make('as a bastion without keys', { roles: ['bastion'], ssh_key_ids: [] }),
      ['changed where it is not there', 'PATCH', `${all}/nothing`, { name: 'a' }],
      ['given a plan that is not there', 'PATCH', out, { plan: 'nothing' }],
      ['given a plan that is too small', 'PATCH', out, { plan: 'tiny' }],
      ['given a member elsewhere', 'PATCH', out, { members: [member({ address: '10.2.0.1' })] }],
      ['given the port of its bastion', 'PATCH', out, { members: [member({ frontend_port: 22 })] }],
      ['given members without a load balancer', 'PATCH', `${all}/:gate`, { members: [member()] }],
      ['given a key that is not there', 'PATCH', out, { ssh_key_ids: ['none'] }],
      ['left without keys', 'PATCH', out, { ssh_key_ids: [] }],
      ['made a bastion without keys', 'PATCH', `${all}/:gate`, { roles: ['bastion'], ssh_key_ids: [] }],
      ['changed while it changes', 'PATCH', `${all}/:busy`, { roles: ['bastion'] }],
      ['named while it changes', 'PATCH', `${all}/:busy`, { name: 'renamed' }],
      ['changed while it is deleted', 'PATCH', `${all}/:leaving`, { roles: ['bastion'] }],
      ['deleted while it is deleted', 'DELETE', `${all}/:leaving`],
      ['deleted while it is made', 'DELETE', `${all}/:busy`],
    ]),
  ).toEqual([
    'made for a network that is not there: 404 No such network.',
    'made for a network with an edge: 409 in_use The network has an edge already. Change that one, ' +
      'or delete it first.',
    'made in a zone without networks: 409 zone_capability_missing The zone bare has no private ' +
      'networks: none of its hosts answers yet.',
    'made in a zone without images: 409 zone_capability_missing The hosts of zone imageless have ' +
      'no image for it. On each of them its operator runs: sudo npm run image:managed',
    'made in a closed zone: 503 no_capacity The zone takes nothing new.',
    'made with a plan that is not there: 400 (plan) plan: there is no plan nothing; there are ' +
      'premium-4c-8g, starter-1c-1g, starter-2c-4g, tiny',
    'made with a plan that is too small: 400 (plan) plan: its machines need 256 MiB of memory',
    'made with separate machines: 409 zone_capability_missing The zone eu-1-a has no ' +
      'separate_edges: a machine for each role needs 3 servers that take guests. Ask for placement ' +
      'combined, or leave it out.',
    'made with members and no load balancer: 400 (members) members: are the targets of a load ' +
      'balancer: the edge does not have that role',
    'made with a member elsewhere: 400 (members.0.address) members.0.address: must be that of a ' +
      'host of the network 10.1.0.0/24, or an IPv6 address',
    'made with a port of the bastion: 400 (members.0.frontend_port) members.0.frontend_port: 22 is ' +
      'the port of the role bastion',
    'made with a key that is not there: 400 (ssh_key_ids) ssh_key_ids: the account has no key none',
    'made as a bastion without keys: 400 (ssh_key_ids) ssh_key_ids: a server needs at least one ' +
      'SSH key: add one to the account, or give ssh_keys',
    'changed where it is not there: 404 No such edge.',
    'given a plan that is not there: 400 (plan) plan: there is no plan nothing; there are ' +
      'premium-4c-8g, starter-1c-1g, starter-2c-4g, tiny',
    'given a plan that is too small: 400 (plan) plan: its machines need 256 MiB of memory',
    'given a member elsewhere: 400 (members.0.address) members.0.address: must be that of a host ' +
      'of the network 10.1.0.0/24, or an IPv6 address',
    'given the port of its bastion: 400 (members.0.frontend_port) members.0.frontend_port: 22 is ' +
      'the port of the role bastion',
    'given members without a load balancer: 400 (members) members: are the targets of a load ' +
      'balancer: the edge does not have that role',
    'given a key that is not there: 400 (ssh_key_ids) ssh_key_ids: the account has no key none',
    'left without keys: 400 (ssh_key_ids) ssh_key_ids: a server needs at least one SSH key: add ' +
      'one to the account, or give ssh_keys',
    'made a bastion without keys: 400 (ssh_key_ids) ssh_key_ids: a server needs at least one SSH ' +
      'key: add one to the account, or give ssh_keys',
    `changed while it changes: 409 operation_in_progress ${BUSY}`,
    'named while it changes: 200',
    `changed while it is deleted: 409 operation_in_progress ${BUSY}`,
    `deleted while it is deleted: 409 operation_in_progress ${BUSY}`,
    'deleted while it is made: 202',
  ])
})

test('an edge is not made, changed or deleted by kubectl', async () => {
  const object = (more: object): KubeObject<EdgeSpec> => ({
    apiVersion: 'svccloud.dev/v1alpha1',
    kind: 'Edge',
    metadata: { namespace, name: 'new' },
    spec: Edge.spec.parse({
      zone: cloud.zone,
      networkId: ids['free'],
      name: 'new',
      roles: ['load_balancer'],
      plan: 'starter-1c-1g',
      ...more,
    }),
  })
  const make = (what: string, more: object) => [`made ${what}`, object(more)] as const
  const found = async (name: string) => {
    const edge = await cloud.admin.get(Edge, { namespace, name: ids[name] ?? '' })
    if (edge === undefined) throw new Error(`there is no ${name}`)
    return edge
  }
  const [out, gate, busy, leaving] = [
    await found('out'),
    await found('gate'),
    await found('busy'),
    await found('leaving'),
  ]
  const change = (what: string, more: object, before = out) =>
    [what, { ...before, spec: Edge.spec.parse({ ...before.spec, ...more }) }, before] as const
  expect(
    await admissions(cloud, Edge, [
      make('well', {}),
      make('before its network', { networkId: 'later' }),
      make('for a network without ranges', { networkId: 'fresh' }),
      make('for a network with an edge', { networkId: ids['of-out'] }),
      make('in another zone than its network', { zone: 'imageless' }),
      make('in a zone that is not there', { zone: 'nowhere', networkId: 'later' }),
      make('in a zone without networks', { zone: 'bare', networkId: 'in-bare' }),
      make('in a zone without images', { zone: 'imageless', networkId: 'in-imageless' }),
      make('in a closed zone', { zone: 'closed', networkId: 'in-closed' }),
      make('with a plan that is not there', { plan: 'nothing' }),
      make('with a plan that is too small', { plan: 'tiny' }),
      make('with separate machines', { placement: 'separate' }),
      make('with members and no load balancer', { roles: ['nat_gateway'], members: [stored()] }),
      make('with a member elsewhere', { members: [stored({ address: '10.2.0.1' })] }),
      make('with a member of no address', { members: [stored({ address: 'nowhere' })] }),
      make('with a member that nobody can read', { members: [stored({ name: 'a b' })] }),
      make('with a port of the bastion', {
        roles: ['bastion', 'load_balancer'],
        sshKeys: [PUBLIC_KEY],
        members: [stored({ frontendPort: 22 })],
      }),
      make('with a key that is none', { roles: ['bastion'], sshKeys: ['none'] }),
      make('as a bastion without keys', { roles: ['bastion'] }),
      make('with a name that nobody can read', { name: 'a\u0007' }),
      change('changed in nothing', {}),
      change('named', { name: 'renamed' }),
      change('named so that nobody can read it', { name: 'a\u0007' }),
      change('given members', { members: [stored()] }),
      change('given members and a name', { members: [stored()], name: 'renamed' }),
      change('given a plan that is not there', { plan: 'nothing' }),
      change('given a member elsewhere', { members: [stored({ address: '10.2.0.1' })] }),
      change('given members without a load balancer', { members: [stored()] }, gate),
      change('given a key that is none', { sshKeys: ['none'] }),
      change('left without keys', { sshKeys: [] }),
      change('made a bastion without keys', { roles: ['bastion'] }, gate),
      change('moved', { zone: 'bare' }),
      change('given another network', { networkId: ids['free'] }),
      change('given another placement', { placement: 'separate' }),
      change('changed while it changes', { roles: ['load_balancer'] }, busy),
      change('named while it changes', { name: 'other' }, busy),
      change('changed while it is deleted', { roles: ['load_balancer'] }, leaving),
      ['left without its finalizer', { ...out, metadata: { ...out.metadata, finalizers: [] } }, out],
      ['deleted', undefined, out],
      ['deleted while it is made', undefined, busy],
      ['deleted while it is deleted', undefined, leaving],
    ]),
  ).toEqual([
    'made well: is admitted as edge.sync',
    'made before its network: is admitted as edge.sync',
    'made for a network without ranges: is admitted as edge.sync',
    'made for a network with an edge: 409 in_use The network has an edge already. Change that one, ' +
      'or delete it first.',
    'made in another zone than its network: 400 (spec.zone) spec.zone: the network is in zone eu-1-a',
    'made in a zone that is not there: 400 (spec.zone) spec.zone: there is no zone nowhere; there ' +
      'are bare, closed, eu-1-a, imageless',
    'made in a zone without networks: 409 zone_capability_missing The zone bare has no private ' +
      'networks: none of its hosts answers yet.',
    'made in a zone without images: 409 zone_capability_missing The hosts of zone imageless have ' +
      'no image for it. On each of them its operator runs: sudo npm run image:managed',
    'made in a closed zone: 503 no_capacity The zone takes nothing new.',
    'made with a plan that is not there: 400 (spec.plan) spec.plan: there is no plan nothing; ' +
      'there are premium-4c-8g, starter-1c-1g, starter-2c-4g, tiny',
    'made with a plan that is too small: 400 (spec.plan) spec.plan: its machines need 256 MiB of memory',
    'made with separate machines: 409 zone_capability_missing The zone eu-1-a has no ' +
      'separate_edges: a machine for each role needs 3 servers that take guests. Ask for placement ' +
      'combined, or leave it out.',
    'made with members and no load balancer: 400 (spec.members) spec.members: are the targets of a ' +
      'load balancer: the edge does not have that role',
    'made with a member elsewhere: 400 (spec.members.0.address) spec.members.0.address: must be ' +
      'that of a host of the network 10.1.0.0/24, or an IPv6 address',
    'made with a member of no address: 400 (spec.members.0.address) spec.members.0.address: must be an address',
    'made with a member that nobody can read: 400 (spec.members.0.name) spec.members.0.name: must ' +
      'be letters, digits and dashes, at most 63',
    'made with a port of the bastion: 400 (spec.members.0.frontendPort) ' +
      'spec.members.0.frontendPort: 22 is the port of the role bastion',
    'made with a key that is none: 400 (spec.sshKeys.0) spec.sshKeys.0: must start with one of ' +
      'ssh-ed25519, ssh-rsa, ecdsa-sha2-nistp256, ecdsa-sha2-nistp384, ecdsa-sha2-nistp521, ' +
      'sk-ssh-ed25519@openssh.com, sk-ecdsa-sha2-nistp256@openssh.com',
    'made as a bastion without keys: 400 (spec.sshKeys) spec.sshKeys: a bastion needs at least one ' +
      'SSH key: nobody could sign in',
    'made with a name that nobody can read: 400 (spec.name) spec.name: must be printable',
    'changed in nothing: is admitted as ',
    'named: is admitted as edge.update',
    'named so that nobody can read it: 400 (spec.name) spec.name: must be printable',
    'given members: is admitted as edge.sync',
    'given members and a name: is admitted as edge.sync, edge.update',
    'given a plan that is not there: 400 (spec.plan) spec.plan: there is no plan nothing; there ' +
      'are premium-4c-8g, starter-1c-1g, starter-2c-4g, tiny',
    'given a member elsewhere: 400 (spec.members.0.address) spec.members.0.address: must be that ' +
      'of a host of the network 10.1.0.0/24, or an IPv6 address',
    'given members without a load balancer: 400 (spec.members) spec.members: are the targets of a ' +
      'load balancer: the edge does not have that role',
    'given a key that is none: 400 (spec.sshKeys.0) spec.sshKeys.0: must start with one of ' +
      'ssh-ed25519, ssh-rsa, ecdsa-sha2-nistp256, ecdsa-sha2-nistp384, ecdsa-sha2-nistp521, ' +
      'sk-ssh-ed25519@openssh.com, sk-ecdsa-sha2-nistp256@openssh.com',
    'left without keys: 400 (spec.sshKeys) spec.sshKeys: a bastion needs at least one SSH key: ' +
      'nobody could sign in',
    'made a bastion without keys: 400 (spec.sshKeys) spec.sshKeys: a bastion needs at least one ' +
      'SSH key: nobody could sign in',
    'moved: 400 (spec.zone) spec.zone: cannot be changed',
    'given another network: 400 (spec.networkId) spec.networkId: cannot be changed',
    'given another placement: 400 (spec.placement) spec.placement: cannot be changed',
    `changed while it changes: 409 operation_in_progress ${BUSY}`,
    'named while it changes: is admitted as edge.update',
    `changed while it is deleted: 409 operation_in_progress ${BUSY}`,
    'left without its finalizer: 403 The finalizer goes when nothing of the edge is left.',
    'deleted: is admitted as edge.delete',
    'deleted while it is made: is admitted as edge.delete',
    'deleted while it is deleted: is admitted as edge.delete',
  ])
})
