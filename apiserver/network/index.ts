import { Network } from '../../resources/network/index.ts'
import { kind } from '../admission/kind.ts'
import { noun } from '../noun.ts'
import { networkAdmission } from './admission.ts'
import { networkEndpoints, type NetworkParts } from './endpoints.ts'
import { type Networks, openNetworks } from './networks.ts'

export { requirePrivateNetworks, withoutNetworks } from './rules.ts'
export { type NetworkObject, type Networks } from './networks.ts'

export const network = noun<NetworkParts, { readonly networks: Networks }>({
  name: 'network',
  kinds: [kind(Network, { access: 'write', target: 'network', admission: networkAdmission })],
  open: (parts) => ({ networks: openNetworks(parts) }),
  endpoints: networkEndpoints,
})
