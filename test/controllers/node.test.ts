import { describe, expect, test } from 'vitest'
import { type NodeObject, plan, type Seen } from '../../controllers/node/plan.ts'
import type { Candidate } from '../../domain/placement.ts'
import type { Action } from '../../kit/reconcile/action.ts'
import type { NodeReportSpec } from '../../resources/instance.ts'
import type { NodeSpec, NodeStatus } from '../../resources/platform.ts'

const report: NodeReportSpec = { agentVersion: '1', bootId: 'b', logicalCpus: 4, memoryMebibytes: 8_192, storageGibibytes: 100, hypervisor: 'simulated', features: [] }
const node = (status?: NodeStatus, spec: Partial<NodeSpec> = {}, deletionTimestamp?: string): NodeObject => ({
  apiVersion: 'svccloud.dev/v1alpha1', kind: 'Node', metadata: { name: 'n1', uid: 'u', generation: 1, ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }) },
  spec: { zone: 'z1', rack: 'r1', roles: ['compute'], isCordoned: false, cpuOvercommit: 4, reservedMemoryMebibytes: 2_048, ...spec }, ...(status === undefined ? {} : { status }),
})
const mirror = (isSchedulable = true, cores = 0): Candidate => ({
  node: 'n1', zone: 'z1', rack: 'r1', cpuPool: null, dedicatedAccountId: null, isSchedulable, total: { cores: 16, memoryMebibytes: 6_144, storageGibibytes: 100 },
  used: { cores, memoryMebibytes: 0, storageGibibytes: 0 },
})
const seen = (changes: Partial<Seen> = {}): Seen => ({ hasNamespace: true, hasAccess: true, report, heartbeat: { renewedAt: 't1', silentSeconds: 1 }, mirror: mirror(), ...changes })
const told = (actions: readonly Action[]) => actions.flatMap((action) => {
  if (action.do === 'status') return [`state ${String(action.status['state'])}`]
  if (action.do === 'effect') return [`effect ${action.name}${action.name === 'mirror' ? ` ${String(action.input['isSchedulable'])}` : ''}`]
  if (action.do === 'ensure' || action.do === 'remove') return [`${action.do} ${action.type.kind}`]
  return action.do === 'wait' ? [] : [action.do]
})
const status = (actions: readonly Action[]) => actions.find((action) => action.do === 'status')?.status

describe('a node', () => {
  test.each<readonly [string, NodeObject, Seen, readonly string[]]>([
    ['gets its namespace first', node(), seen({ hasNamespace: false }), ['ensure Namespace']],
    ['then the secret of its agent', node(), seen({ hasAccess: false, report: undefined, heartbeat: undefined, mirror: undefined }), ['effect grant', 'state provisioning']],
    ['waits for its agent', node(), seen({ report: undefined, heartbeat: undefined, mirror: undefined }), ['state provisioning']],
    ['is ready when its agent is heard, and placement learns of it', node(), seen({ mirror: undefined }), ['effect mirror true', 'state ready']],
    ['at rest changes nothing', node({ state: 'ready' }), seen(), ['state ready']],
    ['that is cordoned takes nothing new', node({ state: 'ready' }, { isCordoned: true }), seen(), ['effect mirror false', 'state cordoned']],
    ['is well up to the third missed heartbeat', node({ state: 'ready' }), seen({ heartbeat: { renewedAt: 't1', silentSeconds: 14.9 } }), ['state ready']],
    ['is unreachable with it, and takes nothing new', node({ state: 'ready' }), seen({ heartbeat: { renewedAt: 't1', silentSeconds: 15 } }), ['effect mirror false', 'state unreachable']],
    ['stays so for a controller that has only begun to listen', node({ state: 'unreachable', lastSeenAt: 't1' }), seen({ mirror: mirror(false), heartbeat: { renewedAt: 't1', silentSeconds: 0 } }), ['state unreachable']],
    ['is ready again with the next heartbeat', node({ state: 'unreachable', lastSeenAt: 't1' }), seen({ mirror: mirror(false), heartbeat: { renewedAt: 't2', silentSeconds: 0 } }), ['effect mirror true', 'state ready']],
    ['whose lease was removed is unreachable', node({ state: 'ready' }), seen({ heartbeat: undefined }), ['effect mirror false', 'state unreachable']],
    ['that grew is mirrored again', node({ state: 'ready' }, { cpuOvercommit: 8 }), seen(), ['effect mirror true', 'state ready']],
    ['that leaves takes nothing new while servers are on it', node({ state: 'ready' }, {}, 'now'), seen({ mirror: mirror(true, 2) }), ['effect forget', 'state undefined']],
    ['then only waits', node({ state: 'ready' }, {}, 'now'), seen({ mirror: mirror(false, 2) }), ['state undefined']],
    ['goes when it is empty', node({ state: 'ready' }, {}, 'now'), seen(), ['effect forget', 'remove Namespace', 'finalized']],
  ])('%s', (_why, object, world, expected) => expect(told(plan(object, world))).toEqual(expected))

  test('writes when it was seen last only while it is silent, so that a heartbeat is no write', () => {
    expect(status(plan(node({ state: 'ready' }), seen()))?.['lastSeenAt']).toBeUndefined()
    expect(status(plan(node({ state: 'ready' }), seen({ heartbeat: { renewedAt: 't1', silentSeconds: 20 } })))?.['lastSeenAt']).toBe('t1')
  })
  test('is looked at again no later than its third missed heartbeat', () => {
    const wait = (silentSeconds: number) => plan(node({ state: 'ready' }), seen({ heartbeat: { renewedAt: 't1', silentSeconds } })).find((action) => action.do === 'wait')?.seconds
    expect([wait(1), wait(12), wait(14.5), wait(100)]).toEqual([5, 3, 1, 1])
  })
})
