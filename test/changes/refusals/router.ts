import { Network } from '../../../resources/network/index.ts'
import { Router } from '../../../resources/router/index.ts'
import { asking, differing, makeGuest, type Table, WHY } from '../refusals.ts'

const zone = 'eu-1-a'
const { create, change, remove, request, ofPlatform, creationNeeds } = asking('/routers', { zone, name: 'new' })
const route = (destination: string, nextHop: string, comment = '') => ({
  staticRoutes: [{ destination, nextHop, comment }],
})
const BY_NOBODY = route('10.9.0.0/16', '10.7.0.9')
const attach = (what: string, of: string, network: string, networkIds: readonly string[]) =>
  change(`attach ${what}`, of, { networkIds }, { method: 'POST', suffix: '/networks', rest: { network_id: network } })
const detach = (what: string, of: string, network: string, networkIds: readonly string[]) =>
  change(`detach ${what}`, of, { networkIds }, { method: 'DELETE', suffix: `/networks/${network}` })

export const TABLE: Table = {
  resource: Router,
  async arrange(scene) {
    const { make, put, request } = scene
    for (const [name, ipv4_cidr] of [
      ['back', '10.1.0.0/24'],
      ['over', '10.3.0.128/25'],
      ['front', '10.2.0.0/24'],
      ['free', '10.3.0.0/24'],
      ['side', '10.4.0.0/24'],
      ['broad', '10.3.0.0/24'],
    ] as const) {
      const status = { ipv4Cidr: ipv4_cidr, ipv6Prefix: 'fd00::/64' }
      await make(name, '/networks', { zone, name, ipv4_cidr }, { status })
    }
    await put(Network, 'fresh', Network.spec.parse({ zone, name: 'fresh' }))
    await make('out', '/routers', { zone, name: 'out', network_ids: [':back'], nat_enabled: true })
    await make('other', '/routers', { zone, name: 'other', network_ids: [':front'] })
    await make('routed', '/routers', { zone, name: 'routed', network_ids: [':side'] })
    await make('wide', '/routers', { zone, name: 'wide', network_ids: [':broad'] })
    for (const name of ['alone', 'plain']) await make(name, '/routers', { zone, name })
    await make('busy', '/routers', { zone, name: 'busy' }, { isBusy: true })
    await make('leaving', '/routers', { zone, name: 'leaving' })
    await request('DELETE', '/routers/:leaving')
    await makeGuest('web', ':back', scene)
    await make('ip', '/floating-ips', { zone, server_id: ':web', target: 'private::back' })
  },
  rows: [
    create('before its network', { networkIds: [':free', 'later'] }, { differs: WHY.pending }),
    create('at a network without ranges', { networkIds: [':fresh'] }, { differs: WHY.pending }),
    create('in no zone', { zone: 'nowhere' }),
    create('in a zone without networks', { zone: 'bare' }),
    create('in a closed zone', { zone: 'closed' }),
    create('with NAT where no address is left', { zone: 'imageless', natEnabled: true }),
    create('at a network of another router', { networkIds: [':front'] }),
    create('at networks that overlap', { networkIds: [':free', ':over'] }),
    create('with a route to nowhere', route('127.0.0.0/8', '10.1.0.9')),
    create('with a route by nobody', BY_NOBODY),
    create('with a second way outside', { natEnabled: true, networkIds: [':free'], ...route('0.0.0.0/0', '10.3.0.9') }),
    create('with a comment that nobody can read', route('10.9.0.0/16', '10.1.0.9', 'a\u0007')),
    create('with a name that nobody can read', { name: 'a\u0007' }),
    create('with labels of no form', { labels: { 'a b': '' } }),
    create('with the name of another', { name: 'out' }),
    ...creationNeeds('address', 'credit', 'quota'),
    ...ofPlatform('out', 'router.sync'),
    create(''),

    change('rename as another', 'out', { name: 'other' }),
    change('rename and label one that is busy', 'busy', { name: 'renamed', labels: { a: 'b' } }),
    change('rename one that is being deleted', 'leaving', { name: 'left' }),
    change('route by nobody', 'out', BY_NOBODY),
    change('route a second way outside', 'out', route('0.0.0.0/0', '10.1.0.9')),
    change('route at one that is busy', 'busy', route('10.9.0.0/16', '10.3.0.9')),
    change('route at one that is being deleted', 'leaving', route('10.9.0.0/16', '10.3.0.9')),
    change('enable NAT at one that is busy', 'busy', { natEnabled: true }),
    change('disable the NAT of a floating IP', 'out', { natEnabled: false }),
    change('move', 'out', { zone: 'bare' }, { rest: false }),
    change('route', 'routed', route('10.9.0.0/16', '10.4.0.9')),
    change('enable NAT', 'plain', { natEnabled: true }),
    change('rename', 'plain', { name: 'simple' }),
    request('change one that is not there', 'PATCH', '/nothing', { name: 'a' }),

    ...differing(WHY.pending, attach('a network that is not there', 'alone', 'nothing', ['nothing'])),
    attach('a network of another router', 'out', ':front', [':back', ':front']),
    attach('a network that overlaps', 'wide', ':over', [':broad', ':over']),
    ...differing(
      'the schema of the kind has each network once in the list; a request of REST names only the one to attach',
      attach('a network twice', 'other', ':front', [':front', ':front']),
    ),
    attach('a network to one that is busy', 'busy', ':free', [':free']),
    attach('a network to one that is being deleted', 'leaving', ':free', [':free']),
    attach('a network', 'alone', ':free', [':free']),
    ...differing(WHY.unchanged, detach('a network of another', 'other', ':back', [':front'])),
    detach('the network of a floating IP', 'out', ':back', []),
    detach('a network', 'other', ':front', []),

    remove('one with networks', 'out'),
    remove('one that is being made', 'busy'),
    remove('one that is being deleted', 'leaving', { differs: WHY.deletionWaits }),
  ],
}
