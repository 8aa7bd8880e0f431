import { networkChanges } from '../../../changes/network.ts'
import { getNetwork, listNetworks, Network } from '../../../resources/network/index.ts'
import { kind } from '../../kit/admission/kind.ts'
import { admissionOf } from '../../kit/admission/changes.ts'
import { changeEndpoints } from '../../kit/rest.ts'
import { noun } from '../../kit/noun.ts'
import type { Parts } from '../../kit/parts.ts'
import { getObject, labelsOfQuery, listObjects } from '../../kit/plain/objects.ts'
import { type Networks, openNetworks } from './objects.ts'

export type { Networks } from './objects.ts'

export const network = noun<Parts & { readonly networks: Networks }, { readonly networks: Networks }>({
  name: 'network',
  kinds: [kind(Network, { access: 'write', target: 'network', admission: admissionOf(networkChanges) })],
  open: (parts) => ({ networks: openNetworks(parts) }),
  endpoints: ({ networks, ...parts }) => [
    getObject(networks, getNetwork),
    listObjects(parts, networks, listNetworks, ({ zone, label }) => ({
      labels: labelsOfQuery(label),
      fields: { zone },
    })),
    ...changeEndpoints(parts, networkChanges, networks),
  ],
})
