import { describe, expect, test } from 'vitest'
import { type FloatingIpObject, type Observed, plan } from '../../../../controllers/nouns/floating-ip/plan.ts'
import { advance, pendingProgress } from '../../../../controllers/kit/operation/progress.ts'
import { defined } from '../../../../domain/defined.ts'
import type { FloatingIpSpec, FloatingIpStatus } from '../../../../resources/floating-ip/index.ts'
import { ACCOUNT, NOW, actionLines, after, operation } from '../server/worlds.ts'

type Status = Partial<FloatingIpStatus>
const stanza = (action: string) => operation('floating_ip.sync', 'op-1', { action })
const ended = (action: string) => {
  const one = stanza(action)
  const end = { do: 'operation', id: one.id, step: 'done', outcome: 'succeeded' } as const
  return { operation: one, progress: advance(pendingProgress(one), end, NOW) }
}
const claim = (serverId?: string, networkId?: string) => ({ zone: 'z1', address: '203.0.113.9', serverId, networkId })
const facts = {
  zone: 'z1',
  id: 'uid-1',
  address: '203.0.113.9',
  target: { kind: 'public', serverAddress: '198.51.100.7' },
} as const

function lines(
  spec: Partial<FloatingIpSpec>,
  status: Status | undefined,
  observed: Partial<Observed> = {},
  { isDeleted = false, now = NOW } = {},
): readonly string[] {
  const root: FloatingIpObject = {
    apiVersion: 'svccloud.dev/v1alpha1',
    kind: 'FloatingIP',
    metadata: {
      name: 'ip',
      namespace: `acct-${ACCOUNT}`,
      uid: 'uid-1',
      generation: 1,
      ...(isDeleted ? { deletionTimestamp: NOW.toISOString() } : {}),
    },
    spec: { zone: 'z1', ...spec },
    ...defined({ status }),
  }
  const seen: Observed = {
    accountId: ACCOUNT,
    claim: claim('web'),
    server: 'there',
    facts,
    isTargetTaken: false,
    isRouterMissing: false,
    isApplied: true,
    installed: undefined,
    edits: [],
    editor: 'user:kubectl-edit',
    ...observed,
  }
  return actionLines(plan(root, seen, now))
}

describe('an operation on a floating IP', () => {
  const assigning: Partial<FloatingIpSpec> = { serverId: 'web', target: 'public', operation: stanza('assign') }
  test.each<readonly [string, readonly string[], readonly string[]]>([
    [
      'claims its address first',
      lines(assigning, undefined, { claim: undefined }),
      ['effect claim', 'operation op-1 claimed', 'state undefined', 'wait for the database'],
    ],
    [
      'waits for a server that is being made',
      lines(assigning, undefined, { claim: undefined, server: 'unmade' }),
      ['operation op-1 claimed', 'state undefined', 'wait for the server web'],
    ],
    [
      'forwards to no address of another server meanwhile',
      lines(assigning, undefined, { claim: claim(), server: 'unmade', isTargetTaken: true, isApplied: false }),
      ['effect apply', 'operation op-1 applied', 'state undefined', 'wait for the network'],
    ],
    [
      'moves the claim to the server',
      lines(assigning, undefined, { claim: claim('other') }),
      ['effect claim', 'operation op-1 claimed', 'state undefined', 'wait for the database'],
    ],
    [
      'moves the claim to another target of it',
      lines({ ...assigning, target: 'private:back' }, undefined),
      ['effect claim', 'operation op-1 claimed', 'state undefined', 'wait for the database'],
    ],
    [
      'then tells the network',
      lines(assigning, undefined, { isApplied: false }),
      ['effect apply', 'operation op-1 applied', 'state undefined', 'wait for the network'],
    ],
    [
      'waits for the router that it points through',
      lines(assigning, undefined, { facts: undefined, isRouterMissing: true, isApplied: false }),
      ['operation op-1 applied', 'state undefined', 'wait for its router to be there'],
    ],
    [
      'waits until the gateways follow',
      lines(assigning, { appliedSequence: 7 }, { installed: 6 }),
      ['operation op-1 installed', 'state undefined', 'wait for the hosts that lead outside'],
    ],
    [
      'ends when they do',
      lines(assigning, { appliedSequence: 7 }, { installed: 7 }),
      ['operation op-1 installed succeeded', 'state undefined', 'wait for a change'],
    ],
    [
      'lets go of the server when it is unassigned',
      lines({ operation: stanza('unassign') }, undefined),
      ['effect claim', 'operation op-1 claimed', 'state undefined', 'wait for the database'],
    ],
    [
      'fails in an account that is not there',
      lines(assigning, undefined, { accountId: undefined, claim: undefined }),
      ['operation op-1 claimed failed: The namespace belongs to no account.', 'state undefined'],
    ],
  ])('%s', (_why, seen, expected) => expect(seen).toEqual(expected))

  test('fails at its deadline', () =>
    expect(lines(assigning, undefined, { claim: claim('other') }, { now: after(600) })).toContain(
      'operation op-1 applied failed: It was not done in time: still waiting for the database.',
    ))
})

describe('at rest', () => {
  const { operation: last, progress } = ended('assign')
  const rest: Partial<FloatingIpSpec> = { serverId: 'web', target: 'public', operation: last }
  const status: Status = { address: '203.0.113.9', serverId: 'web', target: 'public', operation: progress }
  test.each<readonly [string, readonly string[], readonly string[]]>([
    ['nothing is done', lines(rest, status), ['state undefined', 'wait for a change']],
    [
      'the network is told again what it does not know',
      lines(rest, status, { isApplied: false }),
      ['effect apply', 'state undefined', 'wait for the network'],
    ],
    [
      'the network keeps an assignment that PostgreSQL has forgotten',
      lines(rest, status, { claim: claim(), facts: undefined, isApplied: false }),
      ['state undefined', 'wait for a change'],
    ],
    [
      'the network keeps one to a server that PostgreSQL has forgotten as well',
      lines(rest, status, { claim: claim(), server: 'unmade', facts: undefined, isApplied: false }),
      ['state undefined', 'wait for a change'],
    ],
    [
      'the network drops one whose address another server has now',
      lines(rest, status, {
        claim: claim(),
        server: 'unmade',
        isTargetTaken: true,
        facts: undefined,
        isApplied: false,
      }),
      ['effect apply', 'state undefined', 'wait for the network'],
    ],
    [
      'the network keeps one through a router that Kubernetes has lost',
      lines(rest, status, { facts: undefined, isRouterMissing: true, isApplied: false }),
      ['state undefined', 'wait for a change'],
    ],
    [
      'the network drops one whose target has left',
      lines(rest, status, { facts: undefined, isApplied: false }),
      ['effect apply', 'state undefined', 'wait for the network'],
    ],
    [
      'an edit with kubectl begins its operation',
      lines({ ...rest, serverId: 'other' }, status),
      ['change {"operation":{"kind":"floating_ip.sync","actor":"user:kubectl-edit"}}'],
    ],
    [
      'the end of its server unassigns it',
      lines(rest, status, { claim: claim(), server: 'gone', facts: undefined }),
      ['change {"serverId":null,"target":null,"operation":{"kind":"floating_ip.sync","actor":"system:controllers"}}'],
    ],
    [
      'one that was made with kubectl is allocated',
      lines({ serverId: 'web' }, undefined, { claim: undefined }),
      ['change {"operation":{"kind":"floating_ip.sync","actor":"user:kubectl-edit"}}'],
    ],
    [
      'one that the API allocated without a server needs no operation',
      lines({ address: '203.0.113.9' }, undefined, { claim: claim(), server: 'gone', facts: undefined }),
      ['state undefined', 'wait for a change'],
    ],
  ])('%s', (_why, seen, expected) => expect(seen).toEqual(expected))
})

describe('released', () => {
  test('through the API its object goes first', () =>
    expect(lines({ operation: stanza('release') }, undefined, { claim: claim() })).toEqual(['remove FloatingIP']))
  test('its rows and its address go with it', () =>
    expect(lines({ operation: stanza('release') }, undefined, { claim: claim() }, { isDeleted: true })).toEqual([
      'effect release',
      'operation op-1 installed succeeded',
      'state undefined',
      'finalized',
    ]))
})
