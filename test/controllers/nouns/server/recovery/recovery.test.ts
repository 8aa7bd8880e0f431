/** The rows of a server's table about lost nodes, and each step of server.recover: the node `node-1` is lost, `node-2`
 *  takes the server. */
import { describe, expect, test } from 'vitest'
import { plan } from '../../../../../controllers/nouns/server/plan.ts'
import type { Observed } from '../../../../../controllers/nouns/server/observed.ts'
import { defined } from '../../../../../domain/defined.ts'
import type { OperationKind } from '../../../../../domain/operations.ts'
import type { ServerSpec, ServerStatus } from '../../../../../resources/server/index.ts'
import {
  actionLines,
  after,
  ended,
  instance,
  NOW,
  operation,
  started,
  storage,
  working,
  type World,
} from '../worlds.ts'

const LOST = 'node-1'
const TARGET = 'node-2'
const fenced: Partial<Observed> = { fencedNodes: [LOST], unreachableNodes: [LOST], isHostReachable: false }

const onPool = (node = LOST): NonNullable<Observed['storage']> => {
  const made = storage('online')
  return { ...made, status: { ...made.status, state: 'online', pool: 'pool-1', nodeName: node } }
}
const claims = (node: string, target?: string): NonNullable<Observed['claims']> => {
  const { claims: known } = started().observed
  if (known === undefined) throw new Error('a started server has claims')
  return {
    ...known,
    placement: { ...known.placement, node },
    ...(target === undefined ? {} : { target: { operationId: 'op-1', zone: 'zone-1', node: target } }),
  }
}
const there = (spec: Parameters<typeof instance>[0], status: Parameters<typeof instance>[1], madeFor = 'op-1') => {
  const made = instance(spec, status, madeFor)
  return { ...made, metadata: { ...made.metadata, namespace: `node-${TARGET}` } }
}
interface Scene {
  readonly spec?: Partial<ServerSpec>
  readonly status?: Partial<ServerStatus>
  readonly observed?: Partial<Observed>
  readonly args?: Record<string, string>
  readonly actor?: string
}
const recovering = ({ spec, status, observed, args = {}, actor = 'system:fencing' }: Scene = {}): World => {
  const world = working(
    'server.recover',
    {
      status: { state: 'error', ...status },
      observed: { ...fenced, storage: onPool(), ...observed },
      ...defined({ spec }),
    },
    { lost_node_id: LOST, ...args },
  )
  return {
    ...world,
    server: {
      ...world.server,
      spec: {
        ...world.server.spec,
        operation: { ...operation('server.recover', 'op-1', { lost_node_id: LOST, ...args }), actor },
      },
    },
  }
}
const left = (changes: Partial<Observed> = {}): Partial<Observed> => ({
  claims: claims(TARGET),
  instance: undefined,
  storage: onPool(TARGET),
  isHostReachable: true,
  strayInstances: [],
  ...changes,
})
const lines = ({ server, observed }: World, now = NOW) =>
  actionLines(plan(server, observed, now)).filter((line) => !line.startsWith('effect audit'))

describe('a server whose node was lost', () => {
  test.each<readonly [string, World, readonly string[]]>([
    [
      'started, node lost, cannot be fenced: error, and it says so',
      started({ observed: { unreachableNodes: [LOST], isHostReachable: false } }),
      ['state error: The host of the server does not answer. The server shows its state again when the host is back.'],
    ],
    [
      'started, node lost and fenced, disk on shared storage: error until it recovers',
      started({ observed: { ...fenced, storage: onPool() } }),
      ['state error: The host of the server was lost. The server goes on elsewhere.'],
    ],
    [
      'started, node lost and fenced, disk lost with it: error, and it says so',
      started({ observed: fenced }),
      [
        'state error: The host of the server was lost, and the disk of the server is on that host alone. The ' +
          'server runs again when the host comes back.',
      ],
    ],
    [
      'stopped, node lost and fenced: stays stopped',
      started({
        spec: { desiredPower: 'stopped' },
        status: { state: 'stopped' },
        observed: { ...fenced, instance: instance({ power: 'stopped' }, { state: 'stopped' }) },
      }),
      ['state stopped'],
    ],
    ['error leaves by itself when the node returns', started({ status: { state: 'error' } }), ['state started']],
  ])('%s', (_why, world, expected) => expect(lines(world)).toEqual(expected))
})

describe('recovery', () => {
  test.each<readonly [string, World, readonly string[]]>([
    [
      'is refused while the node is not fenced',
      recovering({ actor: 'operator', observed: { fencedNodes: [] } }),
      [
        'operation op-1 reserved failed: There is no proof that the server no longer runs on node node-1.',
        'state error',
      ],
    ],
    [
      'ends quietly when the node has come back',
      recovering({ observed: { fencedNodes: [], unreachableNodes: [], isHostReachable: true } }),
      ['operation op-1 reserved cancelled', 'state error'],
    ],
    [
      'gives back what it held when the node has come back',
      recovering({ observed: { fencedNodes: [], claims: claims(LOST, TARGET) } }),
      ['effect release', 'operation op-1 reserved cancelled', 'state error'],
    ],
    [
      'of a server whose disk was lost too is refused',
      recovering({ observed: { storage: storage('online') } }),
      [
        expect.stringContaining('operation op-1 reserved failed: The host of the server was lost, and the disk'),
        expect.stringContaining('state error'),
      ] as unknown as string[],
    ],
    [
      'holds room elsewhere first',
      recovering(),
      [
        'effect reserve',
        'operation op-1 reserved',
        'state error: The host of the server was lost. The server goes on elsewhere.',
        'wait for room on another node',
      ],
    ],
    [
      'without room: error, and it says so',
      recovering({
        status: {
          conditions: [
            {
              type: 'Reserved',
              status: 'False',
              reason: 'NoCapacity',
              message: 'Zone z has no room.',
              lastTransitionTime: NOW.toISOString(),
            },
          ],
        },
      }),
      [
        'effect reserve',
        'operation op-1 reserved',
        'state error: The host of the server was lost, and it cannot go on elsewhere yet. Zone z has no room.',
        'wait for room on another node',
      ],
    ],
    [
      'then the server lives there',
      recovering({ observed: { claims: claims(LOST, TARGET) } }),
      ['effect switch', 'operation op-1 moved', 'state starting', 'wait for the next look'],
    ],
    [
      'then the lost node loses what it had',
      recovering({ observed: left({ strayInstances: [instance({}, {})] }) }),
      ['remove Instance', 'operation op-1 released', 'state starting', 'wait for node node-1 to lose the server'],
    ],
    [
      'then the disk is there',
      recovering({ observed: left({ storage: onPool(LOST) }) }),
      ['operation op-1 storage', 'state starting'],
    ],
    [
      'then it is started with an incarnation that nobody had',
      recovering({ status: { incarnation: 4 }, observed: left() }),
      ['ensure Instance running 5', 'operation op-1 started', 'state starting'],
    ],
    [
      'brings the user data along, and leaves none behind',
      recovering({ spec: { userDataSecretName: 'web-user-data' }, status: { incarnation: 4 }, observed: left() }),
      [
        'effect bringUserData',
        'remove Secret',
        'ensure Instance running 5',
        'operation op-1 started',
        'state starting',
      ],
    ],
    [
      'waits for the guest',
      recovering({ observed: left({ instance: there({ incarnation: 2 }, undefined) }) }),
      ['operation op-1 started', 'state starting'],
    ],
    [
      'is done when the guest runs (ha restart: starting to started)',
      recovering({ observed: left({ instance: there({ incarnation: 2 }, { incarnation: 2 }) }) }),
      ['operation op-1 started succeeded', 'state started'],
    ],
    [
      'without high availability leaves it stopped (ha none)',
      recovering({ spec: { haPolicy: 'none' }, observed: left() }),
      ['change {"desiredPower":"stopped"}', 'ensure Instance stopped 1', 'operation op-1 started', 'state stopped'],
    ],
    [
      'without high availability is done when the node has it',
      recovering({
        spec: { haPolicy: 'none', desiredPower: 'stopped' },
        observed: left({ instance: there({ power: 'stopped' }, { state: 'stopped' }) }),
      }),
      [
        'operation op-1 started succeeded',
        'state stopped: The host of the server was lost. The server is on another one now, stopped as its policy ' +
          'wants it.',
      ],
    ],
    [
      'of a server that was off leaves it off',
      recovering({ spec: { desiredPower: 'stopped' }, observed: left() }),
      ['ensure Instance stopped 1', 'operation op-1 started', 'state stopped'],
    ],
    [
      'starts it when an operator says so',
      recovering({ spec: { haPolicy: 'none' }, args: { start: 'true' }, observed: left() }),
      ['ensure Instance running 2', 'operation op-1 started', 'state starting'],
    ],
    [
      'fails when the other node cannot run it',
      recovering({
        observed: left({
          instance: there({ incarnation: 2 }, { state: 'error', detail: 'No memory.', incarnation: 2 }),
        }),
      }),
      [
        expect.stringContaining('desiredPower'),
        expect.stringContaining('ensure Instance stopped'),
        'operation op-1 started failed: No memory.',
        'state stopped',
      ] as unknown as string[],
    ],
  ])('%s', (_why, world, expected) => expect(lines(world)).toEqual(expected))

  test('goes on beyond the point where the lost node is back', () => {
    expect(lines(recovering({ observed: left({ fencedNodes: [], unreachableNodes: [] }) }))).toContain(
      'ensure Instance running 2',
    )
  })
  test('is an event that names both nodes', () => {
    const { server, observed } = recovering({ observed: { claims: claims(LOST, TARGET) } })
    const actionLines = plan(server, observed, NOW).find((action) => action.do === 'operation')
    expect(actionLines?.events).toMatchObject([
      { kind: 'recovery_started', data: { lost_node_id: LOST, node_id: TARGET } },
    ])
  })
  test('that does not come to an end in time does not leave the server on its way', () => {
    const world = recovering({ observed: left({ instance: there({ incarnation: 2 }, undefined) }) })
    const error = 'It was not done in time: still waiting for the guest to start.'
    expect(lines(world, after(31 * 60))).toEqual([`operation op-1 started failed: ${error}`, `state error: ${error}`])
  })

  test('that finds no room in time leaves what the owner wants as it is', () => {
    const world = recovering()
    expect(
      lines(world, after(31 * 60)).filter((line) => line.startsWith('change') || line.startsWith('operation')),
    ).toEqual(['operation op-1 reserved failed: It was not done in time: still waiting for room on another node.'])
  })
})

describe('what was under way on a node that is fenced', () => {
  const under = (kind: OperationKind, spec: Partial<ServerSpec> = {}) =>
    lines(working(kind, { observed: { ...fenced, storage: onPool() }, spec }))
  test.each<readonly [OperationKind, Partial<ServerSpec>, string]>([
    ['server.start', {}, 'failed'],
    ['server.restart', {}, 'failed'],
    ['server.stop', { desiredPower: 'stopped' }, 'succeeded'],
    ['server.metadata', {}, 'succeeded'],
  ])('%s ends at once, so that the server can recover, and changes no wish', (kind, spec, outcome) => {
    const observed = under(kind, spec)
    expect(observed.filter((line) => line.startsWith('operation'))).toEqual([expect.stringContaining(outcome)])
    expect(observed.filter((line) => line.startsWith('change') || line.startsWith('ensure'))).toEqual([])
  })
  test('is not begun again by itself', () => {
    const { stanza, progress } = ended('server.start', 'op-9')
    const world = started({
      spec: { operation: stanza },
      status: { state: 'error', operation: { ...progress, status: 'failed' } },
      observed: { ...fenced, storage: onPool() },
    })
    expect(lines(world).filter((line) => line.startsWith('change'))).toEqual([])
  })
})
