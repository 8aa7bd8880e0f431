/** What changes of several nouns refer to. */
import { isHiddenMachineId, requireOwnMachine } from '../../domain/managed-machine.ts'
import { notFound } from '../../domain/problem.ts'
import { Network, type NetworkStatus } from '../../resources/network/index.ts'
import { Server, type ServerSpec } from '../../resources/server/index.ts'
import type { Reference } from './define.ts'

/** A server of the account's own: machines that the platform runs for it are changed through what they are run for. */
export const ownServer = (mayFollow: Reference['mayFollow']): Reference => ({
  type: Server,
  title: 'server',
  mayFollow,
  requireUsable({ metadata: { name }, spec }) {
    if (isHiddenMachineId(name)) throw notFound('server')
    requireOwnMachine((spec as ServerSpec).managedBy, 'other') // the kind is `Server`
  },
})

/** A private network. Nothing can be in one that has claimed no ranges yet. */
export const ownNetwork = (mayFollow: Reference['mayFollow']): Reference => ({
  type: Network,
  title: 'network',
  mayFollow,
  isReady: ({ status }) => (status as NetworkStatus | undefined)?.ipv6Prefix !== undefined, // the kind is `Network`
})
