import { Network } from '../../../resources/network/index.ts'
import { asking, makeGuest, type Table, WHY } from '../refusals.ts'

const zone = 'eu-1-a'
const { create, change, remove, request, ofPlatform, creationNeeds } = asking('/networks', { zone, name: 'new' })

export const TABLE: Table = {
  resource: Network,
  async arrange(scene) {
    const { make, request } = scene
    for (const name of ['back', 'front', 'routed', 'inhabited', 'free', 'leaving'])
      await make(name, '/networks', { zone, name })
    await make('busy', '/networks', { zone, name: 'busy' }, { isBusy: true })
    await make('out', '/routers', { zone, name: 'out', network_ids: [':routed'] })
    await makeGuest('web', ':inhabited', scene)
    await request('DELETE', '/networks/:leaving')
  },
  rows: [
    create('in no zone', { zone: 'nowhere' }),
    create('in a zone without networks', { zone: 'bare' }),
    create('in a closed zone', { zone: 'closed' }),
    create('with a public range', { ipv4Cidr: '8.8.8.0/24' }),
    create('with bits beyond the prefix', { ipv4Cidr: '10.0.0.1/24' }),
    create('with a range that is too large', { ipv4Cidr: '10.0.0.0/8' }),
    create('with a name server that is none', { dnsServers: ['dns'] }),
    create('with five name servers', { dnsServers: Array(5).fill('1.1.1.1') }),
    create('with labels of no form', { labels: { 'a b': '' } }),
    create('without a name', { name: '' }),
    create('with a name that nobody can read', { name: 'a\u0007' }),
    create('with the name of another', { name: 'back' }),
    create('without addresses for guests', { dhcpEnabled: false }, { differs: WHY.noField }),
    ...creationNeeds('address', 'credit', 'quota'),
    ...ofPlatform('back', 'network.sync'),
    create(''),

    change('rename as another', 'back', { name: 'front' }),
    change('rename one that is busy', 'busy', { name: 'renamed' }),
    change('rename one that is being deleted', 'leaving', { name: 'left' }),
    change('label', 'back', { labels: { tier: 'a' } }),
    change('label so that nobody can read it', 'back', { labels: { 'a b': '' } }),
    change('configure a name server that is none', 'back', { dnsServers: ['dns'] }),
    change('configure one that is busy', 'busy', { dhcpEnabled: false }),
    change('configure one that is being deleted', 'leaving', { dhcpEnabled: false }),
    change('configure', 'back', { dhcpEnabled: false }),
    change('move', 'back', { zone: 'bare' }, { rest: false }),
    change('change the range', 'back', { ipv4Cidr: '10.2.0.0/24' }, { rest: false }),
    request('change one that is not there', 'PATCH', '/nothing', { name: 'a' }),

    remove('one with a router', 'routed'),
    remove('one with a server', 'inhabited'),
    remove('one that is being made', 'busy'),
    remove('one that is being deleted', 'leaving', { differs: WHY.deletionWaits }),
    remove('', 'free'),
  ],
}
