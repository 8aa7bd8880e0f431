import { DevCluster } from '../../../resources/dev-cluster/index.ts'
import { Network } from '../../../resources/network/index.ts'
import { PUBLIC_KEY } from '../../apiserver/cloud.ts'
import { asking, makeNetwork, type Table, WHY } from '../refusals.ts'

const zone = 'eu-1-a'
const WELL = { zone, name: 'new', plan: 'starter-2c-4g', sshKeys: [PUBLIC_KEY] }
const { create, remove, edit, ofPlatform, creationNeeds } = asking('/dev-clusters', WELL, {
  kubectl: { version: '1.36' },
})

export const TABLE: Table = {
  resource: DevCluster,
  async arrange(scene) {
    const { make, put, request } = scene
    await makeNetwork('back', '10.1.0.0/24', scene)
    await put(Network, 'away', Network.spec.parse({ zone: 'imageless', name: 'away' }))
    for (const name of ['one', 'other', 'leaving'])
      await make(name, '/dev-clusters', { zone, name, plan: 'starter-2c-4g', ssh_keys: [PUBLIC_KEY] }, { isBusy: true })
    await request('DELETE', '/dev-clusters/:leaving')
  },
  rows: [
    create('before its network', { networkId: 'later' }, { differs: WHY.pending }),
    create('in a network of another zone', { networkId: ':away' }),
    create('in no zone', { zone: 'nowhere' }),
    create('in a zone without networks', { zone: 'bare' }),
    create('in a zone without images', { zone: 'imageless' }),
    create('in a closed zone', { zone: 'closed' }),
    create('with a version that is not offered', { version: '1.20' }, { kubectl: { version: '1.20' } }),
    create('with a plan that is not there', { plan: 'none' }),
    create('with a plan that is too small', { plan: 'small' }),
    create('with a plan that no host has room for', { plan: 'huge' }),
    create('with a key that is none', { sshKeys: ['nonsense'] }),
    create('with labels of no form', { labels: { '-': 'x' } }),
    create('with the name of another', { name: 'other' }),
    ...creationNeeds('address', 'credit', 'quota'),
    ...ofPlatform('one'),
    create('in a network', { networkId: ':back' }),

    ...Object.entries({
      zone: 'bare',
      name: 'renamed',
      plan: 'small',
      version: '1.35',
      publicIpv4: true,
      networkId: ':back',
      sshKeys: [],
      labels: { a: 'b' },
    }).map(([field, value]) => edit(`change ${field}`, 'one', { spec: { [field]: value } })),

    remove('one that is being deleted', 'leaving', { differs: WHY.deletedAgain }),
    remove('', 'one'),
  ],
}
