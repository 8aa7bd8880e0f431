import { networkChanges } from '../../changes/network.ts'
import { getNetwork, listNetworks, Network } from '../../resources/network/index.ts'
import { kind } from '../admission/kind.ts'
import { admissionOf } from '../kit/admission.ts'
import { changeEndpoints } from '../kit/rest.ts'
import { noun } from '../noun.ts'
import type { Parts } from '../parts.ts'
import { getObject, labelsOfQuery, listObjects } from '../plain/objects.ts'
import { type Networks, openNetworks } from './networks.ts'

export type { Networks } from './networks.ts'

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
