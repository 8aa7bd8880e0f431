import { mirrorPool, takeAddress } from '../../../db/public-pool/index.ts'
import { PublicPool } from '../../../resources/public-pool/index.ts'
import { asking, type Table } from '../refusals.ts'

const family = 'ipv6'
const use = 'server_ipv6_prefix'
/** Beside the zone of the cloud, which has separate pools. */
const zone = 'far'
const kubectlOnly = { rest: false } as const
const { create, edit, remove, ofPlatform } = asking('/public-pools', { zone, family, cidr: '2001:db8:f000::/40', use })

export const TABLE: Table = {
  resource: PublicPool,
  async arrange({ put, claim, accountId }) {
    const cidr = '2001:db8:4000::/40'
    await put(PublicPool, 'mine', { zone, family, cidr, use }, { state: 'active' })
    await claim(async (tx) => {
      await mirrorPool(tx, { id: 'mine', zone, family, cidr, use, state: 'active' })
      await takeAddress(tx, { zone, use, accountId, holder: 'server/holder' })
    })
    await put(PublicPool, 'empty', { zone, family, cidr: '2001:db8:ff00::/40', use })
  },
  rows: [
    create('', {}, kubectlOnly),
    create('in no zone', { zone: 'nowhere' }, kubectlOnly),
    create('that is no network', { cidr: '2001:db8:f000::1/40' }, kubectlOnly),
    create('that calls private what is public', { isPrivate: true }, kubectlOnly),
    create('that overlaps another', { cidr: '2001:db8:4001::/48' }, kubectlOnly),
    ...ofPlatform('mine', 'public_pool.sync'),
    edit('drain', 'mine', { spec: { state: 'draining' } }),
    remove('one whose addresses are in use', 'mine', kubectlOnly),
    remove('', 'empty', kubectlOnly),
  ],
}
