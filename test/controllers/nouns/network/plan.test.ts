/** What the controller of networks decides, row by row. */
import { expect, test } from 'vitest'
import { type NetworkObject, type Observed, plan } from '../../../../controllers/nouns/network/plan.ts'
import type { NetworkFacts } from '../../../../controllers/network/ovn/private-network.ts'
import { defined } from '../../../../domain/defined.ts'

const NOW = new Date('2026-01-01T00:00:00Z')
const FACTS: NetworkFacts = {
  zone: 'z',
  id: 'u',
  ipv4Cidr: '10.0.0.0/24',
  ipv6Prefix: 'fd00::/64',
  dnsServers: [],
  dhcpEnabled: true,
}
const CLAIM = { zone: 'z', name: 'n', ipv4Cidr: '10.0.0.0/24', ipv6Prefix: 'fd00::/64', isEnding: false }
const SEEN: Observed = {
  accountId: 'a',
  claim: CLAIM,
  hasNetworks: true,
  region: 'r',
  facts: FACTS,
  isApplied: true,
  installed: undefined,
  edits: [],
  editor: 'user:x',
}
const stanza = (action: string, deadlineAt = '2026-01-01T00:10:00Z') => ({
  id: 'op',
  kind: 'network.sync' as const,
  requestedAt: NOW.toISOString(),
  deadlineAt,
  actor: 'user:x',
  requestId: 'request',
  arguments: { action },
})
const network = (more: {
  readonly metadata?: object
  readonly spec?: object
  readonly status?: NetworkObject['status']
}): NetworkObject => ({
  apiVersion: 'svccloud.dev/v1alpha1',
  kind: 'Network',
  metadata: { name: 'n1', namespace: 'acct-a', uid: 'u', generation: 1, ...more.metadata },
  spec: { zone: 'z', name: 'n', dnsServers: [], dhcpEnabled: true, labels: {}, ...more.spec },
  ...defined({ status: more.status }),
})
const ASKED = { asked: { dnsServers: [], dhcpEnabled: true } }
const refused = (type: string): NonNullable<NetworkObject['status']> => ({
  conditions: [
    { type, status: 'False', reason: 'NameTaken', message: 'taken', lastTransitionTime: '', observedGeneration: 1 },
  ],
})

/** Effects, changes and the end of the operation, in words. */
const decided = (object: NetworkObject, seen: Partial<Observed>): string =>
  plan(object, { ...SEEN, ...seen }, NOW)
    .flatMap((action) => {
      if (action.do === 'effect') return [action.name]
      if (action.do === 'operation')
        return [`${action.step}${action.outcome === undefined ? '' : ` ${action.outcome}`}`]
      return action.do === 'change' || action.do === 'remove' || action.do === 'finalized' ? [action.do] : []
    })
    .join(', ')

const CREATING = network({ spec: { operation: stanza('create') } })
const DELETING = network({
  metadata: { deletionTimestamp: NOW.toISOString() },
  spec: { operation: stanza('delete') },
})

test.each([
  ['made with kubectl: gets its operation', network({}), {}, 'change'],
  ['edited with kubectl: gets its operation', network({ spec: { dhcpEnabled: false }, status: ASKED }), {}, 'change'],
  ['of no account', CREATING, { accountId: undefined, claim: undefined }, 'claimed failed'],
  ['in a zone without networks', CREATING, { hasNetworks: false, claim: undefined }, 'claimed failed'],
  ['in a zone that lost its networks: waits', CREATING, { hasNetworks: false }, 'applied'],
  ['without a claim: claims', CREATING, { claim: undefined, facts: undefined }, 'claim, claimed'],
  [
    'refused a claim: fails',
    network({ spec: { operation: stanza('create') }, status: refused('Claimed') }),
    { claim: undefined, facts: undefined },
    'claimed failed',
  ],
  ['with another name: renames', CREATING, { claim: { ...CLAIM, name: 'old' } }, 'claim, claimed'],
  ['not written: writes', CREATING, { isApplied: false }, 'apply, applied'],
  [
    'not installed: waits',
    network({ spec: { operation: stanza('create') }, status: { appliedSequence: 7 } }),
    { installed: 6 },
    'installed',
  ],
  [
    'installed: succeeds',
    network({ spec: { operation: stanza('create') }, status: { appliedSequence: 7 } }),
    { installed: 7 },
    'installed succeeded',
  ],
  ['written where nobody knows more: succeeds', CREATING, {}, 'installed succeeded'],
  [
    'overdue: fails',
    network({ spec: { operation: stanza('create', '2025-12-31T00:00:00Z') } }),
    { isApplied: false },
    'apply, applied failed',
  ],
  ['idle, behind its router: writes', network({ status: ASKED }), { isApplied: false }, 'apply'],
  ['idle and as it shall be', network({ status: ASKED }), {}, ''],
  [
    'deleted through the API: goes in Kubernetes first',
    network({ spec: { operation: stanza('delete') } }),
    {},
    'remove',
  ],
  ['deleted with kubectl: gets its operation', network({ metadata: DELETING.metadata }), {}, 'change'],
  ['on its way out: may take nothing more', DELETING, {}, 'claim, applied'],
  [
    'on its way out, and in use: waits',
    network({ metadata: DELETING.metadata, spec: DELETING.spec, status: refused('Ended') }),
    {},
    'claim, applied',
  ],
  [
    'with nothing in it: goes',
    DELETING,
    { claim: { ...CLAIM, isEnding: true } },
    'release, installed succeeded, finalized',
  ],
  ['never claimed: goes', DELETING, { claim: undefined, facts: undefined }, 'release, installed succeeded, finalized'],
] as const)('a network %s', (_what, object, seen, wanted) => {
  expect(decided(object, seen)).toBe(wanted)
})
