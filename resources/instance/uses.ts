/** What a guest uses on its host that is unique everywhere: also prefixes that were replaced and are still routed to
 *  it, and what its server does not report yet. */
import type { Use } from '../../domain/claim/use.ts'
import { firstOfPrefix } from '../../domain/public-pool/rules.ts'
import { use } from '../kit/uses.ts'
import type { InstanceSpec } from './index.ts'

export const usesOfInstance = ({ interfaces }: Pick<InstanceSpec, 'interfaces'>): readonly Use[] =>
  interfaces.flatMap(({ kind, macAddress, ipv4, ipv6, routedPrefixes = [] }) => [
    ...use('mac', '', macAddress),
    ...(kind === 'private' // unique in its network only, which its server names
      ? []
      : [
          ...use('address', '', ipv4?.address),
          ...use('address', '', ipv6?.address),
          ...routedPrefixes.flatMap((prefix) => use('address', '', firstOfPrefix(prefix))),
        ]),
  ])
