import { Edge } from '../../../resources/edge/index.ts'
import { Network } from '../../../resources/network/index.ts'
import { PUBLIC_KEY } from '../../apiserver/cloud.ts'
import { asking, makeNetwork, type Table, WHY } from '../refusals.ts'

const zone = 'eu-1-a'
const { create, change, remove, edit, request, ofPlatform, creationNeeds } = asking(
  '/edges',
  { networkId: ':free', name: 'new', roles: ['load_balancer'] },
  { kubectl: { zone, plan: 'starter-1c-1g' } },
)
const members = (more: object = {}) => ({
  members: [{ name: 'web', frontendPort: 80, address: '10.1.0.10', port: 8080, ...more }],
})
/** The zone of an edge by REST is that of its network. */
const inZone = (what: string, name: string) => create(what, { networkId: `:in-${name}` }, { kubectl: { zone: name } })
const keys = (ids: readonly string[], sshKeys: readonly string[] = ids) => ({
  rest: { ssh_key_ids: ids },
  kubectl: { sshKeys },
})

export const TABLE: Table = {
  resource: Edge,
  async arrange(scene) {
    const { make, put, request } = scene
    await request('POST', '/ssh-keys', { name: 'a', public_key: PUBLIC_KEY })
    await makeNetwork('free', '10.1.0.0/24', scene)
    for (const [name, roles] of [
      ['out', ['bastion', 'load_balancer']],
      ['gate', ['nat_gateway']],
      ['leaving', ['nat_gateway']],
      ['busy', ['nat_gateway']],
    ] as const) {
      await makeNetwork(`of-${name}`, '10.1.0.0/24', scene)
      const body = { network_id: `:of-${name}`, name, roles }
      await make(name, '/edges', body, { status: { state: 'running' }, isBusy: name === 'busy' })
    }
    await request('DELETE', '/edges/:leaving')
    const status = { ipv4Cidr: '10.1.0.0/24', ipv6Prefix: 'fd00:1::/64' }
    for (const name of ['bare', 'closed', 'imageless'])
      await put(Network, `in-${name}`, Network.spec.parse({ zone: name, name }), status)
    await put(Network, 'fresh', Network.spec.parse({ zone, name: 'fresh' }))
  },
  rows: [
    create('before its network', { networkId: 'later' }, { differs: WHY.pending }),
    create('for a network without ranges', { networkId: ':fresh' }, { rest: false }),
    create('for a network with an edge', { networkId: ':of-out' }),
    create('in another zone than its network', {}, { rest: false, kubectl: { zone: 'imageless' } }),
    create('in no zone', { networkId: 'later' }, { rest: false, kubectl: { zone: 'nowhere' } }),
    inZone('in a zone without networks', 'bare'),
    inZone('in a zone without images', 'imageless'),
    inZone('in a closed zone', 'closed'),
    create('with a plan that is not there', { plan: 'nothing' }, { kubectl: { plan: 'nothing' } }),
    create('with a plan that is too small', { plan: 'tiny' }, { kubectl: { plan: 'tiny' } }),
    create('with separate machines', { placement: 'separate' }),
    create('with members and no load balancer', { roles: ['nat_gateway'], ...members() }),
    create('with a member elsewhere', members({ address: '10.2.0.1' })),
    create('with a member of no address', members({ address: 'nowhere' })),
    create('with a member that nobody can read', members({ name: 'a b' })),
    create(
      'with a port of the bastion',
      { roles: ['bastion', 'load_balancer'], ...members({ frontendPort: 22 }) },
      {
        kubectl: { sshKeys: [PUBLIC_KEY] },
      },
    ),
    create('with a key that is none', { roles: ['bastion'] }, keys(['none'])),
    create('as a bastion without keys', { roles: ['bastion'] }, keys([])),
    create('without a role', { roles: [] }),
    create('with a role that there is not', { roles: ['router'] }),
    create('with a weight beyond the most', members({ weight: 256 })),
    create('with a name that nobody can read', { name: 'a\u0007' }),
    ...creationNeeds('address', 'credit', 'quota'),
    ...ofPlatform('out', 'edge.sync'),

    change('change nothing', 'out', {}),
    change('rename', 'out', { name: 'renamed' }),
    change('rename so that nobody can read it', 'out', { name: 'a\u0007' }),
    change('rename one that is busy', 'busy', { name: 'other' }),
    change('give a plan that is not there', 'out', { plan: 'nothing' }),
    change('give a plan that is too small', 'out', { plan: 'tiny' }),
    change('give a member elsewhere', 'out', members({ address: '10.2.0.1' })),
    change('give a member the port of the bastion', 'out', members({ frontendPort: 22 })),
    change('give members without a load balancer', 'gate', members()),
    change('give a key that is none', 'out', {}, keys(['none'])),
    change('take its roles', 'out', { roles: [] }),
    change('take its keys', 'out', {}, keys([])),
    change('make a bastion without keys', 'gate', { roles: ['bastion'] }, keys([])),
    change('configure one that is busy', 'busy', { roles: ['load_balancer'] }),
    change('configure one that is being deleted', 'leaving', { roles: ['load_balancer'] }),
    edit('move', 'out', { spec: { zone: 'bare' } }),
    edit('change the network', 'out', { spec: { networkId: ':free' } }),
    edit('change the placement', 'out', { spec: { placement: 'separate' } }),
    change('configure and rename', 'gate', { ...members(), roles: ['load_balancer'], name: 'port' }),
    request('change one that is not there', 'PATCH', '/nothing', { name: 'a' }),

    remove('one that is being made', 'busy'),
    remove('one that is being deleted', 'leaving', { differs: WHY.deletionWaits }),
    remove('', 'out'),
    create(''),
  ],
}
