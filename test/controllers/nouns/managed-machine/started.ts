/** A machine of the platform in the tests of what it runs for. */
import type { Machine } from '../../../../controllers/nouns/managed-machine/index.ts'

/** It has started, and nothing was delivered to it or reported by it. */
export const STARTED: Omit<Machine, 'role' | 'serverId' | 'serverUid' | 'plan' | 'createdAt' | 'node'> = {
  state: 'started',
  stateDetail: '',
  isDeleting: false,
  desiredPower: 'running',
  sharedAddresses: [],
  publicIpv4: undefined,
  publicIpv6: undefined,
  publicIpv6Prefix: undefined,
  publicMacAddress: undefined,
  interfaces: [],
  delivered: undefined,
  running: undefined,
  isHealthy: false,
  detail: '',
  judgedSince: undefined,
  report: undefined,
  reportedAt: undefined,
  imageVersion: undefined,
  newestImageVersion: undefined,
  diskExchange: undefined,
  objects: [],
}
