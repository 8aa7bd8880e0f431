/** What is planned for the machines of an owner. */
import { describe, expect, it } from 'vitest'
import {
  type Machine,
  type MachineDemand,
  machineName,
  type Owner,
  planMachines,
  FIRST_ANSWER_SECONDS,
  REPLACE_AFTER_SECONDS,
  RETRY_AFTER_SECONDS,
} from '../../../../controllers/nouns/managed-machine/index.ts'
import { newestImageOf } from '../../../../controllers/nouns/managed-machine/machine.ts'
import {
  DATABASE_TEMPLATE,
  KUBERNETES_NODE_TEMPLATE,
  MANAGED_TEMPLATE,
} from '../../../../domain/managed-machine/rules.ts'
import { ManagedMachine } from '../../../../resources/managed-machine/index.ts'
import { Server } from '../../../../resources/server/index.ts'

const NOW = new Date('2026-11-23T12:00:00Z')
const ago = (seconds: number) => new Date(NOW.getTime() - seconds * 1_000).toISOString()
const OWNER: Owner = {
  type: 'load_balancer',
  id: 'web',
  uid: 'u-1',
  namespace: 'acct-1',
  accountId: '1',
  zone: 'eu-1a',
  resource: Server,
}
const CONFIGURATION = { generation: 3, fingerprint: 'f3' }
const demand = (role: string, more: Partial<MachineDemand> = {}): MachineDemand => ({
  role,
  hostname: `web-${role}`,
  plan: 'small',
  publicIpv4: true,
  networkIds: ['n1'],
  sharedAddresses: [],
  configuration: CONFIGURATION,
  ...more,
})
const ILL = { isHealthy: false, reportedAt: ago(5) }
const FAILED = { state: 'error', isHealthy: false } as const
/** It boots, or never will. */
const SILENT = { isHealthy: false, judgedSince: undefined, running: undefined, reportedAt: undefined }
const machine = (role: string, more: Partial<Machine> = {}): Machine => ({
  role,
  serverId: machineName(OWNER, role),
  serverUid: `uid-${role}`,
  plan: 'small',
  state: 'started',
  stateDetail: '',
  isDeleting: false,
  createdAt: ago(3_600),
  desiredPower: 'running',
  node: 'node-1',
  sharedAddresses: [],
  publicIpv4: undefined,
  publicIpv6: undefined,
  publicIpv6Prefix: undefined,
  publicMacAddress: undefined,
  interfaces: [],
  delivered: CONFIGURATION,
  running: CONFIGURATION,
  isHealthy: true,
  detail: '',
  judgedSince: ago(3_600),
  report: undefined,
  reportedAt: undefined,
  imageVersion: '1',
  newestImageVersion: '1',
  diskExchange: undefined,
  objects: [],
  ...more,
})
const PAIR = [demand('a'), demand('b')]
const plan = (machines: readonly Machine[], demands: readonly MachineDemand[] = PAIR, lost: readonly string[] = []) =>
  planMachines({ owner: OWNER, demands, machines, lost, now: NOW })
const brief = (machines: readonly Machine[], demands?: readonly MachineDemand[]) =>
  plan(machines, demands).actions.map((action) =>
    action.do === 'ensure'
      ? `ensure ${action.draft.metadata.name}`
      : action.do === 'remove'
        ? `remove ${action.type.kind} ${action.key.name}`
        : action.do === 'effect'
          ? `deliver ${action.input.role} to ${action.input.node}`
          : action.do,
  )
const nameOf = (role: string) => machineName(OWNER, role)

describe('the machines of an owner', () => {
  it('are made, with what only the platform may say of a server', () => {
    expect(brief([])).toEqual([`ensure ${nameOf('a')}`, `ensure ${nameOf('b')}`])
    const [action] = plan([]).actions
    expect(action).toMatchObject({
      draft: {
        metadata: { namespace: 'acct-1', ownerReferences: [{ uid: 'u-1', controller: true }] },
        spec: { managedBy: 'load_balancer:web', template: 'managed-machine', metadataEnabled: false },
      },
    })
    expect(plan([])).toMatchObject({ isSettled: false, waitFor: 'machine a to be made' })
  })

  it('are not made again while something of the earlier one is left, and are neither exchanged meanwhile', () => {
    const missing = plan([machine('b', { plan: 'tiny' })], PAIR, [nameOf('a')])
    expect(missing.actions).toEqual([])
    expect(missing).toMatchObject({ isSettled: false, waitFor: expect.stringMatching(/^machine a to be there: its/) })
    // one that is there again is treated as any other
    expect(plan([machine('a'), machine('b')], PAIR, [nameOf('a')]).isSettled).toBe(true)
  })

  it('stay switched off where their customer may do that, with any other change', () => {
    const off = machine('a', { desiredPower: 'stopped', state: 'stopped' })
    const kept = demand('a', { keepsPower: true })
    expect(brief([off], [kept])).toEqual([])
    const shared = [{ address: '10.1.0.0/24', networkId: 'n1' }]
    expect(plan([off], [{ ...kept, sharedAddresses: shared }]).actions).toMatchObject([
      { do: 'ensure', draft: { spec: { desiredPower: 'stopped', sharedAddresses: shared } } },
    ])
    expect(plan([], [kept]).actions).toMatchObject([{ do: 'ensure', draft: { spec: { desiredPower: 'running' } } }])
  })

  it('are left alone when they are as wanted', () => {
    expect(plan([machine('a'), machine('b')])).toEqual({
      actions: [],
      isSettled: true,
      waitFor: '',
      replacing: undefined,
    })
  })

  it.each<[string, Partial<Machine>, string[]]>([
    ['another configuration', { delivered: { generation: 2, fingerprint: 'f2' } }, ['deliver a to node-1']],
    ['another fingerprint', { delivered: { generation: 3, fingerprint: 'x' } }, ['deliver a to node-1']],
    ['nothing delivered on its node', { delivered: undefined }, ['deliver a to node-1']],
    ['no node', { delivered: undefined, node: undefined, state: 'creating' }, []],
    ['switched off', { desiredPower: 'stopped' }, [`ensure ${nameOf('a')}`]],
    ['other shared addresses', { sharedAddresses: [{ address: '10.0.0.9' }] }, [`ensure ${nameOf('a')}`]],
    ['another plan', { plan: 'tiny' }, [`remove Server ${nameOf('a')}`]],
    ['an older image', { newestImageVersion: '2' }, [`remove Server ${nameOf('a')}`]],
    ['an error since just now', { state: 'error', isHealthy: false, createdAt: ago(RETRY_AFTER_SECONDS - 1) }, []],
    ['an error', { state: 'error', isHealthy: false }, [`remove Server ${nameOf('a')}`]],
    ['an error since its last answer', { ...FAILED, reportedAt: ago(RETRY_AFTER_SECONDS - 1) }, []],
    [
      'an error long after its last answer',
      { ...FAILED, reportedAt: ago(RETRY_AFTER_SECONDS) },
      [`remove Server ${nameOf('a')}`],
    ],
    ['a host that does not answer', { ...FAILED, nodeState: 'unreachable', reportedAt: ago(86_400) }, []],
    ['a host that is being fenced', { ...FAILED, nodeState: 'fencing', reportedAt: ago(86_400) }, []],
    ['a host that was fenced', { ...FAILED, nodeState: 'fenced', reportedAt: ago(REPLACE_AFTER_SECONDS - 1) }, []],
    [
      'a host that was fenced, and no recovery',
      { ...FAILED, nodeState: 'fenced', reportedAt: ago(REPLACE_AFTER_SECONDS) },
      [`remove Server ${nameOf('a')}`],
    ],
    ['unhealthy since just now', { ...ILL, judgedSince: ago(REPLACE_AFTER_SECONDS - 1) }, []],
    ['unhealthy for long', { ...ILL, judgedSince: ago(REPLACE_AFTER_SECONDS) }, [`remove Server ${nameOf('a')}`]],
    ['never an answer', { ...SILENT, createdAt: ago(FIRST_ANSWER_SECONDS) }, [`remove Server ${nameOf('a')}`]],
    ['no answer yet', { ...SILENT, createdAt: ago(FIRST_ANSWER_SECONDS - 1) }, []],
    [
      'a host that is back since just now',
      { ...FAILED, nodeState: 'ready', nodeSince: ago(RETRY_AFTER_SECONDS - 1), reportedAt: ago(86_400) },
      [],
    ],
    [
      'a host that is back, and an error that stays',
      { ...FAILED, nodeState: 'ready', nodeSince: ago(RETRY_AFTER_SECONDS), reportedAt: ago(86_400) },
      [`remove Server ${nameOf('a')}`],
    ],
    ['another host since just now', { ...SILENT, createdAt: ago(86_400), startedAt: ago(60) }, []],
    [
      'another host, and no answer there',
      { ...SILENT, createdAt: ago(86_400), startedAt: ago(FIRST_ANSWER_SECONDS) },
      [`remove Server ${nameOf('a')}`],
    ],
    ['on its way out', { isDeleting: true }, []],
  ])('with %s', (_what, more, expected) => {
    expect(brief([machine('a', more), machine('b')])).toEqual(expected)
  })

  it('stay on a host that was fenced when their owner is patient', () => {
    const lost = [machine('a', { ...FAILED, nodeState: 'fenced', reportedAt: ago(86_400) })]
    expect(brief(lost, [demand('a', { isPatient: true })])).toEqual([])
    expect(brief(lost, [demand('a')])).toEqual([`remove Server ${nameOf('a')}`])
  })

  it('are not exchanged for a newer image when their owner gives them another root disk', () => {
    const old = [machine('a', { newestImageVersion: '2' }), machine('b')]
    expect(brief(old, [demand('a', { keepsImage: true }), demand('b')])).toEqual([])
    expect(
      brief([machine('a', { plan: 'tiny' }), machine('b')], [demand('a', { keepsImage: true }), demand('b')]),
    ).toEqual([`remove Server ${nameOf('a')}`])
  })

  it('are exchanged one at a time', () => {
    const old = { plan: 'tiny' }
    expect(brief([machine('a', old), machine('b', old)])).toEqual([`remove Server ${nameOf('a')}`])
    expect(brief([machine('a', { isDeleting: true }), machine('b', old)])).toEqual([])
    expect(brief([machine('b', old)])).toEqual([`ensure ${nameOf('a')}`])
    expect(brief([machine('a', { isHealthy: false, judgedSince: ago(5) }), machine('b', old)])).toEqual([])
    expect(plan([machine('a', { isDeleting: true }), machine('b')]).replacing).toBe('a')
  })

  it('stay while another may still become healthy; of two that are broken the older goes', () => {
    const broken = { ...ILL, judgedSince: ago(REPLACE_AFTER_SECONDS) }
    const boots = { ...SILENT, createdAt: ago(60) }
    expect(brief([machine('a', boots), machine('b', broken)])).toEqual([])
    expect(brief([machine('a', { ...broken, createdAt: ago(700) }), machine('b', broken)])).toEqual([
      `remove Server ${nameOf('b')}`,
    ])
    expect(brief([machine('a', boots), machine('b', FAILED)])).toEqual([`remove Server ${nameOf('b')}`])
  })

  it('go with what they are for, and with their role', () => {
    expect(brief([machine('a'), machine('b')], [])).toEqual([
      `remove Server ${nameOf('a')}`,
      `remove Server ${nameOf('b')}`,
    ])
    expect(brief([machine('a'), machine('b')], [demand('a')])).toEqual([`remove Server ${nameOf('b')}`])
    expect(plan([], [])).toMatchObject({ actions: [], isSettled: true })
  })

  it('leave nothing with a former host', () => {
    const object = {
      apiVersion: 'svccloud.dev/v1alpha1',
      kind: 'ManagedMachine',
      metadata: { namespace: 'node-node-2', name: 'uid-a' },
      spec: { server: { namespace: 'acct-1', name: nameOf('a'), uid: 'uid-a' }, managedBy: 'load_balancer:web' },
    }
    expect(plan([machine('a', { objects: [object] }), machine('b')]).actions).toEqual([
      { do: 'remove', type: ManagedMachine, key: { namespace: 'node-node-2', name: 'uid-a' } },
    ])
  })
})

it('knows a newer image of each template by what hosts say of that one', () => {
  const report = { managedImageVersion: '2' }
  expect(newestImageOf(MANAGED_TEMPLATE, report)).toBe('2')
  expect(newestImageOf(DATABASE_TEMPLATE, report)).toBeUndefined()
  expect(newestImageOf(DATABASE_TEMPLATE, { databaseImageVersion: '3' })).toBe('3')
  expect(newestImageOf(KUBERNETES_NODE_TEMPLATE, { ...report, databaseImageVersion: '3' })).toBeUndefined()
  expect(newestImageOf(MANAGED_TEMPLATE, undefined)).toBeUndefined()
})
