import { describe, expect, test } from 'vitest'
import { FORGOTTEN_DETAIL } from '../../../../controllers/nouns/server/claimed.ts'
import { plan } from '../../../../controllers/nouns/server/plan.ts'
import { defined } from '../../../../domain/defined.ts'
import {
  after,
  type Changes,
  ended,
  instance,
  newborn,
  NOW,
  operation,
  started,
  storage,
  actionLines,
  working,
  type World,
} from './worlds.ts'

const DELETED = { metadata: { deletionTimestamp: NOW.toISOString() } }
/** Of a server that was made with kubectl. */
const ORDERED_BY_SPEC = { ...operation('server.create'), requestId: 'op-1' }
const lines = ({ server, observed }: World, now = NOW) => actionLines(plan(server, observed, now))
const statusOf = ({ server, observed }: World) => plan(server, observed, NOW).find((action) => action.do === 'status')
const ready = (world: World) => statusOf(world)?.conditions?.find((condition) => condition.type === 'Ready')

const health = (world: World) =>
  ['Ready', 'Reconciling', 'Stalled'].filter(
    (type) => statusOf(world)?.conditions?.find((condition) => condition.type === type)?.status === 'True',
  )

test.each<readonly [why: string, world: World, expected: string]>([
  ['a server that runs as wanted', started(), 'Ready'],
  ['one that is being made with kubectl', newborn({ spec: { operation: ORDERED_BY_SPEC } }), 'Reconciling'],
  ['one that an operation works on', working('server.stop'), 'Reconciling'],
  ['one whose host is silent', started({ observed: { isHostReachable: false } }), 'Stalled'],
])('tools see %s as it is', (_why, world, expected) => expect(health(world)).toEqual([expected]))

test('a server shows where its SSH port is forwarded from, and keeps the host keys that it knew', () => {
  const forwards = [{ guestPort: 22, host: '127.0.0.1', hostPort: 40_022 }]
  const sshHostKeys = ['ssh-ed25519 AAAA']
  const running = started({ observed: { instance: instance({}, { forwards, sshHostKeys }) } })
  expect(statusOf(running)?.status).toMatchObject({ sshForward: { host: '127.0.0.1', port: 40_022 }, sshHostKeys })
  // No longer known by a host that has the guest for the first time: the status is left as it is.
  const moved = statusOf(started({ observed: { instance: instance({}, {}) } }))?.status ?? {}
  expect(moved).toHaveProperty('sshForward', undefined)
  expect(moved).not.toHaveProperty('sshHostKeys')
})

test('the events of a creation tell what the host does for the boot storage', () => {
  const detail = 'Template debian-13 is being built: writing the disk.'
  const world = newborn({ observed: { storage: storage('creating', detail) } })
  const action = plan(world.server, world.observed, NOW).find((each) => each.do === 'operation')
  expect(action).toMatchObject({ events: [{ kind: 'storage', message: detail }] })
})

test('a rebuilt server has no host keys until its new system has printed some', () => {
  const rebuilding = (bootStorageId: string) =>
    statusOf(working('server.rebuild', { spec: { bootStorageId }, observed: { storage: storage('online') } }))?.status
  expect(rebuilding('op-1')).toHaveProperty('sshHostKeys', undefined)
  expect(rebuilding('web-id')).not.toHaveProperty('sshHostKeys')
})

type Row = readonly [why: string, world: World, expected: readonly string[]]

describe('creating', () => {
  test.each<Row>([
    [
      'takes its claims first when nobody has',
      newborn({ observed: { claims: undefined } }),
      ['effect claim', 'operation op-1 claimed', 'state creating', 'wait for room in the zone'],
    ],
    ['then makes the boot storage', newborn(), ['ensure Storage', 'wait for the boot storage']],
    [
      'makes the instance with it, to run when the disk is there',
      newborn({ observed: { storage: storage('creating') } }),
      ['ensure Instance running 1', 'wait for the boot storage'],
    ],
    [
      'or to stay off when it was not to be started',
      newborn({ spec: { desiredPower: 'stopped' }, observed: { storage: storage('creating') } }),
      ['ensure Instance stopped 0', 'wait for the boot storage'],
    ],
    [
      'waits for the boot storage, also when the guest runs',
      newborn({ observed: { storage: storage('creating'), instance: instance({}, {}, 'op-1') } }),
      ['wait for the boot storage'],
    ],
    [
      'waits until the node has begun',
      newborn({ observed: { storage: storage('online'), instance: instance({}, undefined, 'op-1') } }),
      ['wait for the guest to start'],
    ],
    [
      'ends when the guest runs',
      newborn({ observed: { storage: storage('online'), instance: instance({}, {}, 'op-1') } }),
      ['operation op-1 started succeeded', 'state started'],
    ],
    [
      'ends when the node holds the guest that stays off',
      newborn({
        spec: { desiredPower: 'stopped' },
        observed: {
          storage: storage('online'),
          instance: instance({ power: 'stopped', incarnation: 0 }, { state: 'stopped', incarnation: 0 }, 'op-1'),
        },
      }),
      ['operation op-1 started succeeded', 'state stopped'],
    ],
    [
      'ends also when the guest has ended since',
      newborn({
        observed: {
          storage: storage('online'),
          instance: instance({}, { state: 'stopped', endReason: 'guest_shutdown' }, 'op-1'),
        },
      }),
      ['operation op-1 started succeeded', 'state started'],
    ],
    [
      'waits for its group, which may be made after it',
      newborn({ spec: { serverGroupId: 'front' }, observed: { claims: undefined, isGroupMissing: true } }),
      ['operation op-1 claimed', 'state creating', 'wait for the server group front'],
    ],
    [
      'fails without an account',
      newborn({ observed: { accountId: undefined, claims: undefined } }),
      [
        'operation op-1 claimed failed: The namespace belongs to no account.',
        'state error: The namespace belongs to no account.',
      ],
    ],
    [
      'fails without its plan',
      newborn({ observed: { claims: undefined, plan: undefined } }),
      ['operation op-1 claimed failed: There is no plan tiny.', 'state error: There is no plan tiny.'],
    ],
    [
      'fails without its zone',
      newborn({ observed: { claims: undefined, zone: undefined } }),
      ['operation op-1 claimed failed: There is no zone zone-1.', 'state error: There is no zone zone-1.'],
    ],
    [
      'fails without its template',
      newborn({ observed: { claims: undefined, isSystemKnown: false } }),
      [
        'operation op-1 claimed failed: There is no template tiny-linux in zone zone-1.',
        'state error: There is no template tiny-linux in zone zone-1.',
      ],
    ],
    [
      'fails when the disk cannot be made',
      newborn({ observed: { storage: storage('error', 'The disk of the host is full.') } }),
      ['operation op-1 storage failed: The disk of the host is full.', 'state error: The disk of the host is full.'],
    ],
    [
      'leaves the guest off whose disk cannot be made',
      newborn({ observed: { storage: storage('error', 'No room.'), instance: instance({}, undefined, 'op-1') } }),
      ['ensure Instance stopped 1', 'operation op-1 storage failed: No room.', 'state error: No room.'],
    ],
    [
      'fails when the guest cannot be started, and leaves it off',
      newborn({
        observed: {
          storage: storage('online'),
          instance: instance({}, { state: 'error', detail: 'No such image.' }, 'op-1'),
        },
      }),
      ['ensure Instance stopped 1', 'operation op-1 started failed: No such image.', 'state error: No such image.'],
    ],
  ])('%s', (_why, world, expected) => expect(lines(world)).toEqual(expected))

  test('fails for good when the claim of this edit was refused by a quota', () => {
    const refused = (reason: string, generation: number) =>
      newborn({
        metadata: { generation: 2 },
        observed: { claims: undefined },
        status: {
          conditions: [
            {
              type: 'Claimed',
              status: 'False',
              reason,
              message: 'Too many.',
              lastTransitionTime: NOW.toISOString(),
              observedGeneration: generation,
            },
          ],
        },
      })
    expect(lines(refused('QuotaExceeded', 2))).toEqual([
      'operation op-1 claimed failed: Too many.',
      'state error: Too many.',
    ])
    expect(lines(refused('QuotaExceeded', 1))[0]).toBe('effect claim')
    expect(lines(refused('NoCapacity', 2))[0]).toBe('effect claim')
  })

  describe('does not say how far it is', () => {
    const begun = { operation: { ...ended('server.create', 'op-1').progress, status: 'running' as const } }
    const made = (status?: Parameters<typeof instance>[1]) => {
      const one = instance({}, status, 'op-1')
      return { ...one, metadata: { ...one.metadata, creationTimestamp: after(20).toISOString() } }
    }
    const world = (observed: Partial<World['observed']>, changes: Parameters<typeof newborn>[0] = {}) =>
      newborn({ ...changes, observed: { storage: storage('online'), ...observed } })
    test('in its first seconds', () => {
      expect(lines(newborn(), after(9))).toEqual(['ensure Storage', 'wait for the boot storage'])
      expect(lines(newborn(), after(10))).toEqual(['ensure Storage', 'operation op-1 storage', 'state creating'])
      expect(lines(newborn(), after(-1))).toEqual(['ensure Storage', 'operation op-1 storage', 'state creating'])
    })
    test('when it orders the start of the guest', () =>
      expect(lines(world({}, { status: begun }), after(20))).toEqual([
        'ensure Instance running 1',
        'wait for the guest to start',
      ]))
    test('while the host may start the guest any moment', () => {
      for (const status of [undefined, begun]) {
        const waiting = newborn({
          ...defined({ status }),
          observed: { storage: storage('online'), instance: made() },
        })
        expect(lines(waiting, after(29))).toEqual(['wait for the guest to start'])
        expect(lines(waiting, after(30))).toEqual(['operation op-1 started', 'state creating'])
        expect(lines(waiting, after(19))).toEqual(['operation op-1 started', 'state creating'])
      }
    })
    test('unless its host has said something, or nothing for long', () => {
      const progress = ['operation op-1 started', 'state creating']
      expect(lines(world({ instance: made({ state: 'waiting', incarnation: 0 }) }), after(21))).toEqual(progress)
      expect(lines(world({ instance: made(), isHostReachable: false }), after(21))).toEqual(progress)
      const building = storage('creating', 'Template debian-13 is being built.')
      expect(lines(newborn({ observed: { storage: building } }))).toContain('operation op-1 storage')
    })
    test('unless nobody but Kubernetes tells what becomes of it', () =>
      expect(lines(newborn({ spec: { operation: ORDERED_BY_SPEC } }))).toEqual([
        'effect audit server.create',
        'ensure Storage',
        'operation op-1 storage',
        'state creating',
      ]))
    test('unless something else holds it up before it has its claims', () =>
      expect(lines(newborn({ observed: { claims: undefined } }))).toContain('operation op-1 claimed'))
    test('but that it is late', () =>
      expect(
        lines(world({ instance: made() }, { status: begun }), after(1_800)).map((line) => line.split(':')[0]),
      ).toContain('operation op-1 started failed'))
    test('and has begun with its request all the same', () =>
      expect(plan(newborn().server, world({ instance: made({}) }).observed, after(25))).toContainEqual(
        expect.objectContaining({ do: 'operation', outcome: 'succeeded', startedAt: NOW.toISOString() }),
      ))
  })

  test('is over as soon as its server is to be deleted, however little of it is written', () => {
    const deleting = { spec: { operation: operation('server.delete') }, observed: { storage: storage('creating') } }
    expect(lines(newborn(deleting))).toEqual(['remove Server'])
    expect(lines(newborn({ ...deleting, ...DELETED })).join()).toContain('remove Storage')
  })

  test('fails at its deadline with what it waited for', () =>
    expect(lines(newborn({ observed: { storage: storage('creating') } }), after(1_800))).toEqual([
      'operation op-1 storage failed: It was not done in time: still waiting for the boot storage.',
      'state error: It was not done in time: still waiting for the boot storage.',
    ]))

  test('ends where the guest cannot have the user data that kubectl gave', () => {
    const given = { spec: { userDataSecretName: 'web-id-user-data' } }
    const observed = { claims: undefined, userData: { userData: 'eA==' }, userDataFault: 'is for cloud-init' }
    expect(lines(newborn({ ...given, observed }))).toEqual([
      'operation op-1 claimed failed: The user data in Secret web-id-user-data is for cloud-init.',
      'state error: The user data in Secret web-id-user-data is for cloud-init.',
    ])
  })

  test('brings the user data to the node before the instance', () => {
    const given = { spec: { userDataSecretName: 'web-id-user-data' } }
    const observed = { storage: storage('online'), hasUserDataCopy: false }
    expect(lines(newborn({ ...given, observed: { ...observed, userData: { userData: 'eA==' } } }))).toEqual([
      'ensure Secret',
      'ensure Instance running 1',
      'wait for the guest to start',
    ])
    expect(lines(newborn({ ...given, observed }))).toEqual(['wait for the Secret web-id-user-data'])
  })
})

/** Its claims were lost, and its plan and its user data are no longer there. */
const forgotten = (changes: Changes): World =>
  started({
    ...changes,
    spec: { userDataSecretName: 'user-data', ...changes.spec },
    status: { macAddress: '52:54:00:00:00:01', ...changes.status },
    observed: { claims: undefined, plan: undefined, ...changes.observed },
  })

describe('starting', () => {
  const off = {
    spec: { desiredPower: 'running' as const, operation: operation('server.start') },
    status: { state: 'stopped' as const },
  }
  const stopped = instance({ power: 'stopped' }, { state: 'stopped', endReason: 'requested' })
  test.each<Row>([
    [
      'orders a new incarnation',
      started({ ...off, observed: { instance: stopped } }),
      ['ensure Instance running 2', 'operation op-1 started', 'state starting'],
    ],
    [
      'never orders a second one',
      started({ ...off, observed: { instance: instance({ incarnation: 2 }, { state: 'stopped' }, 'op-1', 2) } }),
      ['operation op-1 started', 'state starting'],
    ],
    [
      'never reuses a number that the node has seen',
      started({ ...off, status: { state: 'stopped', incarnation: 7 }, observed: { instance: stopped } }),
      ['ensure Instance running 8', 'operation op-1 started', 'state starting'],
    ],
    [
      'ends when the guest runs',
      started({ ...off, observed: { instance: instance({ incarnation: 2 }, { incarnation: 2 }, 'op-1') } }),
      ['operation op-1 started succeeded', 'state started'],
    ],
    [
      'ends at once when it runs already',
      working('server.start'),
      ['operation op-1 started succeeded', 'state started'],
    ],
    [
      'fails back to stopped when the node cannot',
      started({
        ...off,
        observed: {
          instance: instance({ incarnation: 2 }, { incarnation: 2, state: 'error', detail: 'No KVM.' }, 'op-1'),
        },
      }),
      [
        'change {"desiredPower":"stopped"}',
        'ensure Instance stopped 2',
        'operation op-1 started failed: No KVM.',
        'state stopped',
      ],
    ],
    [
      'starts a server from error',
      started({
        spec: { operation: operation('server.start') },
        status: { state: 'error' },
        observed: { instance: instance({}, { state: 'stopped', endReason: 'crashed' }) },
      }),
      ['ensure Instance running 2', 'operation op-1 started', 'state starting'],
    ],
    [
      'starts a server whose claims were lost as it is, whatever its creation would need now',
      forgotten({ ...off, observed: { instance: stopped } }),
      ['ensure Instance running 2', 'operation op-1 started', 'state starting'],
    ],
    [
      'fails back to stopped without claims too',
      forgotten({
        ...off,
        observed: {
          instance: instance({ incarnation: 2 }, { incarnation: 2, state: 'error', detail: 'No KVM.' }, 'op-1'),
        },
      }),
      [
        'change {"desiredPower":"stopped"}',
        'ensure Instance stopped 2',
        'operation op-1 started failed: No KVM.',
        'state error: No KVM.',
      ],
    ],
  ])('%s', (_why, world, expected) => expect(lines(world)).toEqual(expected))
})

describe('stopping', () => {
  const off = { spec: { desiredPower: 'stopped' as const } }
  const soft = { stop_type: 'soft', timeout_seconds: '30', timeout_action: 'fail' }
  const stop = { id: 'op-1', type: 'soft' as const, timeoutSeconds: 30, timeoutAction: 'fail' as const }
  const with_ = (observed: World['observed']['instance']) =>
    working('server.stop', {
      spec: { ...off.spec, operation: operation('server.stop', 'op-1', soft) },
      observed: { instance: observed },
    })
  test.each<Row>([
    [
      'tells the node how',
      with_(instance({}, {})),
      ['ensure Instance stopped 1 soft 30s fail', 'operation op-1 stopped', 'state stopping'],
    ],
    [
      'by default softly, then hard after a minute',
      working('server.stop', off),
      ['ensure Instance stopped 1 soft 60s hard', 'operation op-1 stopped', 'state stopping'],
    ],
    [
      'waits for the guest',
      with_(instance({ power: 'stopped', stop }, { state: 'stopping' })),
      ['operation op-1 stopped', 'state stopping'],
    ],
    [
      'does not take old news for the end',
      with_(instance({ power: 'stopped', stop }, { state: 'stopped', observedGeneration: 1 }, 'op-0', 2)),
      ['operation op-1 stopped', 'state stopping'],
    ],
    [
      'ends when the guest is gone',
      with_(instance({ power: 'stopped', stop }, { state: 'stopped' })),
      ['operation op-1 stopped succeeded', 'state stopped'],
    ],
    [
      'fails when the guest does not obey, and it goes on',
      with_(instance({ power: 'stopped', stop }, { stop: { id: 'op-1', outcome: 'timed_out' } })),
      [
        'change {"desiredPower":"running"}',
        'ensure Instance running 1 soft 30s fail',
        'operation op-1 stopped failed: The guest did not shut down within 30 seconds. It still runs; stop it ' +
          'hard, or from inside.',
        'state started',
      ],
    ],
    ['is done when there is no guest', with_(undefined), ['operation op-1 stopped succeeded', 'state stopped']],
  ])('%s', (_why, world, expected) => expect(lines(world)).toEqual(expected))

  test('fails at its deadline, and the guest goes on', () =>
    expect(lines(with_(instance({ power: 'stopped', stop }, { state: 'stopping' })), after(600))).toEqual([
      'change {"desiredPower":"running"}',
      'ensure Instance running 1 soft 30s fail',
      'operation op-1 stopped failed: It was not done in time: still waiting for the guest to end.',
      'state started',
    ]))
  test('takes nonsense in the arguments for the default', () =>
    expect(lines(working('server.stop', off, { stop_type: 'gently', timeout_seconds: '1e9' }))[0]).toBe(
      'ensure Instance stopped 1 soft 60s hard',
    ))
})

describe('restarting', () => {
  const stop = { id: 'op-1', type: 'hard' as const, timeoutSeconds: 60, timeoutAction: 'hard' as const }
  const hard = (observed: World['observed']['instance']) =>
    working('server.restart', { observed: { instance: observed } }, { stop_type: 'hard' })
  test.each<Row>([
    [
      'orders the next incarnation and how the last ends',
      hard(instance({}, {})),
      ['ensure Instance running 2 hard 60s hard', 'operation op-1 stopped', 'state stopping'],
    ],
    [
      'is stopping while the old one runs',
      hard(instance({ incarnation: 2, stop }, {}, 'op-1')),
      ['operation op-1 stopped', 'state stopping'],
    ],
    [
      'is starting once it has ended',
      hard(instance({ incarnation: 2, stop }, { state: 'stopped' }, 'op-1')),
      ['operation op-1 started', 'state starting'],
    ],
    [
      'ends when the new one runs',
      hard(instance({ incarnation: 2, stop }, { incarnation: 2 }, 'op-1')),
      ['operation op-1 started succeeded', 'state started'],
    ],
    [
      'goes on as it was when the guest does not obey',
      hard(instance({ incarnation: 2, stop }, { stop: { id: 'op-1', outcome: 'timed_out' } }, 'op-1')),
      [
        'ensure Instance running 1 hard 60s hard',
        'operation op-1 stopped failed: The guest did not shut down within 60 seconds. It still runs; stop it ' +
          'hard, or from inside.',
        'state started',
      ],
    ],
    [
      'stays off when the new one cannot be started',
      hard(instance({ incarnation: 2, stop }, { incarnation: 2, state: 'error', detail: 'No room.' }, 'op-1')),
      [
        'change {"desiredPower":"stopped"}',
        'ensure Instance stopped 2 hard 60s hard',
        'operation op-1 started failed: No room.',
        'state stopped',
      ],
    ],
  ])('%s', (_why, world, expected) => expect(lines(world)).toEqual(expected))
})

describe('switching the metadata service', () => {
  const off = { spec: { metadataEnabled: false, operation: operation('server.metadata') } }
  const made = instance({}, {})
  const actionLines = instance({ metadata: { ...made.spec.metadata, isEnabled: false } }, {}, 'op-0', 2)
  const reachable = (observedGeneration: number) => ({
    ...actionLines,
    status: { state: 'running' as const, incarnation: 1, observedGeneration },
  })
  const changing = { ...off, observed: { instance: reachable(1) } }
  test.each<Row>([
    [
      'tells the node and leaves the guest alone',
      started(off),
      ['ensure Instance running 1', 'operation op-1 done', 'state started'],
    ],
    ['waits until the node has seen it', started(changing), ['operation op-1 done', 'state started']],
    [
      'ends when it has',
      started({ ...off, observed: { instance: reachable(2) } }),
      ['operation op-1 done succeeded', 'state started'],
    ],
    [
      'ends at once where no node has the server',
      started({ ...off, status: { state: 'error' }, observed: { instance: undefined } }),
      ['operation op-1 done succeeded', 'state error'],
    ],
  ])('%s', (_why, world, expected) => expect(lines(world)).toEqual(expected))

  test('fails at its deadline without touching the guest', () =>
    expect(lines(started(changing), after(600))).toEqual([
      'operation op-1 done failed: It was not done in time: still waiting for the host to take over the setting.',
      'state started',
    ]))
})

describe('deleting', () => {
  const deleting = (observed: Partial<World['observed']>) => working('server.delete', { ...DELETED, observed })
  test.each<Row>([
    ['begins with the object', working('server.delete'), ['remove Server']],
    ['then ends the guest', deleting({}), ['remove Instance', 'operation op-1 instance', 'state deleting']],
    [
      'then removes the disk',
      deleting({ instance: undefined }),
      ['remove Storage', 'operation op-1 storage', 'state deleting'],
    ],
    [
      'then gives everything back and is gone',
      deleting({ instance: undefined, storage: undefined }),
      ['effect give_back', 'operation op-1 released succeeded', 'state deleting', 'finalized'],
    ],
    [
      'settles what was asked of it after it gave everything back',
      deleting({ instance: undefined, storage: undefined, claims: undefined }),
      ['effect give_back', 'operation op-1 released succeeded', 'state deleting', 'finalized'],
    ],
    [
      'gives back nothing that no account has',
      deleting({ instance: undefined, storage: undefined, accountId: undefined, claims: undefined }),
      ['operation op-1 released succeeded', 'state deleting', 'finalized'],
    ],
    [
      'cancels a creation that runs',
      newborn({
        spec: { operation: operation('server.delete', 'op-2') },
        status: { operation: { ...ended('server.create', 'op-1').progress, status: 'running' } },
      }),
      ['operation op-1 started cancelled'],
    ],
    [
      'with kubectl gets its operation',
      started(DELETED),
      ['change {"operation":{"kind":"server.delete","actor":"user:kubectl-edit"}}'],
    ],
    [
      'with kubectl first ends a creation that nobody has begun',
      newborn(DELETED),
      ['operation op-1 claimed cancelled', 'state creating', 'wait for the edit that replaces the operation'],
    ],
    [
      'with kubectl replaces a creation that runs',
      newborn({ ...DELETED, status: { operation: { ...ended('server.create', 'op-1').progress, status: 'running' } } }),
      ['change {"operation":{"kind":"server.delete","actor":"user:kubectl-edit"}}'],
    ],
    [
      'with kubectl waits for another operation',
      working('server.start', DELETED),
      ['operation op-1 started succeeded', 'state started'],
    ],
    [
      'with kubectl does nothing to a protected server',
      started({ ...DELETED, spec: { isProtected: true } }),
      ['state started'],
    ],
    [
      'that was accepted is not undone by protection',
      working('server.delete', { ...DELETED, spec: { operation: operation('server.delete'), isProtected: true } }),
      ['remove Instance', 'operation op-1 instance', 'state deleting'],
    ],
  ])('%s', (_why, world, expected) => expect(lines(world)).toEqual(expected))

  test('goes on after its deadline', () => {
    const world = deleting({})
    expect(lines(world, after(600))).toEqual([
      'remove Instance',
      'operation op-1 instance failed: It was not done in time: still waiting for the host to end the guest.',
      'state deleting',
    ])
    const { stanza, progress } = ended('server.delete', 'op-1')
    expect(
      lines(
        started({
          ...DELETED,
          spec: { operation: stanza },
          status: { state: 'deleting', operation: { ...progress, status: 'failed' } },
        }),
      ),
    ).toEqual(['remove Instance', 'state deleting'])
  })

  test('of a protected server says why it does not go', () =>
    expect(statusOf(started({ ...DELETED, spec: { isProtected: true } }))?.conditions).toContainEqual(
      expect.objectContaining({ type: 'DeletionBlocked', status: 'True', reason: 'Protected' }),
    ))
  test('of a protected server is not ready, for the same reason, until the protection is lifted', () => {
    const held = started({ ...DELETED, spec: { isProtected: true } })
    expect(ready(held)).toMatchObject({ status: 'False', reason: 'Protected' })
    expect(health(held)).toEqual(['Stalled'])
    expect(lines(started(DELETED))).toEqual([expect.stringContaining('"kind":"server.delete"')])
  })
  test('takes the Secret that the API server made with it, and no other', () => {
    const gone = (userDataSecretName: string) =>
      lines(
        working('server.delete', {
          ...DELETED,
          spec: { operation: operation('server.delete'), userDataSecretName },
          observed: { instance: undefined, storage: undefined },
        }),
      )
    expect(gone('web-id-user-data').filter((line) => line === 'remove Secret')).toHaveLength(2)
    expect(gone('mine').filter((line) => line === 'remove Secret')).toHaveLength(1)
  })
})

describe('an edit without an operation', () => {
  const { operation: _none, ...bare } = newborn().server.spec
  const made = { ...newborn(), server: { ...newborn().server, spec: bare } }
  test.each<Row>([
    ['that makes a server', made, ['change {"operation":{"kind":"server.create","actor":"user:kubectl-edit"}}']],
    [
      'that switches it off',
      started({ spec: { desiredPower: 'stopped' } }),
      ['change {"operation":{"kind":"server.stop","actor":"user:kubectl-edit"}}'],
    ],
    [
      'that switches it on',
      started({
        status: { state: 'stopped' },
        observed: { instance: instance({ power: 'stopped' }, { state: 'stopped' }) },
      }),
      ['change {"operation":{"kind":"server.start","actor":"user:kubectl-edit"}}'],
    ],
    [
      'waits while another operation runs',
      working('server.start', { spec: { operation: operation('server.start'), desiredPower: 'stopped' } }),
      ['operation op-1 started succeeded', 'state started'],
    ],
  ])('%s gets one', (_why, world, expected) => expect(lines(world)).toEqual(expected))

  test('is audited before its operation begins, and only then', () => {
    const own = { ...operation('server.stop'), requestId: 'op-1' }
    const world = working('server.stop', { spec: { desiredPower: 'stopped', operation: own } })
    expect(lines(world)[0]).toBe('effect audit server.stop')
    const begun = working('server.stop', {
      spec: { desiredPower: 'stopped', operation: own },
      status: { operation: { ...ended('server.stop', 'op-1').progress, status: 'running' } },
    })
    expect(lines(begun)[0]).not.toContain('audit')
  })
})

describe('at rest', () => {
  const crash = (at: string, changes: Parameters<typeof started>[0] = {}) =>
    started({
      ...changes,
      observed: { instance: instance({}, { state: 'stopped', endReason: 'crashed', endedAt: at }) },
    })
  const t = (seconds: number) => after(seconds).toISOString()
  test.each<Row>([
    ['a running server runs', started(), ['state started']],
    [
      'a stopped server is off',
      started({
        spec: { desiredPower: 'stopped' },
        status: { state: 'stopped' },
        observed: { instance: instance({ power: 'stopped' }, { state: 'stopped' }) },
      }),
      ['state stopped'],
    ],
    [
      'a new title reaches the node',
      started({ spec: { title: 'New' } }),
      ['ensure Instance running 1', 'state started'],
    ],
    [
      'a guest that shut itself down stays off and is audited',
      started({ observed: { instance: instance({}, { state: 'stopped', endReason: 'guest_shutdown' }) } }),
      [
        'effect audit server.guest_shutdown',
        'change {"desiredPower":"stopped"}',
        'ensure Instance stopped 1',
        'state stopped: The guest shut itself down.',
      ],
    ],
    ['a crash is written down first', crash(t(-5)), ['state starting: The guest crashed.']],
    [
      'then the platform starts the guest anew',
      crash(t(-5), { status: { state: 'starting', crashedAt: [t(-5)] } }),
      ['change {"operation":{"kind":"server.start","actor":"system:controllers"}}', 'state starting'],
    ],
    [
      'the third crash in ten minutes still is',
      crash(t(-5), { status: { crashedAt: [t(-500), t(-100)] } }),
      ['state starting: The guest crashed.'],
    ],
    [
      'the fourth is an error',
      crash(t(-5), { status: { crashedAt: [t(-500), t(-200), t(-100)] } }),
      ['state error: The guest crashed 4 times in ten minutes. Start it when its trouble is over.'],
    ],
    [
      'that stays',
      crash(t(-5), { status: { state: 'error', stateDetail: 'Four.', crashedAt: [t(-500), t(-200), t(-100), t(-5)] } }),
      ['state error: Four.'],
    ],
    [
      'that of lost claims ends with their return, for a server that is off',
      started({
        spec: { desiredPower: 'stopped' },
        status: { state: 'error', stateDetail: FORGOTTEN_DETAIL },
        observed: { instance: instance({ power: 'stopped' }, { state: 'stopped' }) },
      }),
      ['state stopped'],
    ],
    [
      'and for one whose crash was written down before',
      crash(t(-5), { status: { state: 'error', stateDetail: FORGOTTEN_DETAIL, crashedAt: [t(-5)] } }),
      ['change {"operation":{"kind":"server.start","actor":"system:controllers"}}', 'state starting'],
    ],
    [
      'and for one whose host is silent',
      started({ status: { state: 'error', stateDetail: FORGOTTEN_DETAIL }, observed: { isHostReachable: false } }),
      ['state error: The host of the server does not answer. The server shows its state again when the host is back.'],
    ],
    [
      'another error of a server that is off stays',
      started({
        spec: { desiredPower: 'stopped' },
        status: { state: 'error', stateDetail: 'Broken.' },
        observed: { instance: instance({ power: 'stopped' }, { state: 'stopped' }) },
      }),
      ['state error: Broken.'],
    ],
    [
      'older crashes are forgotten',
      crash(t(-5), { status: { crashedAt: [t(-800), t(-700), t(-601)] } }),
      ['state starting: The guest crashed.'],
    ],
    [
      'a crash without restarts leaves it off',
      crash(t(-5), { spec: { haPolicy: 'none' } }),
      ['change {"desiredPower":"stopped"}', 'ensure Instance stopped 1', 'state stopped: The guest crashed.'],
    ],
    [
      'a silent host is an error',
      started({ observed: { isHostReachable: false } }),
      ['state error: The host of the server does not answer. The server shows its state again when the host is back.'],
    ],
    [
      'that ends when the host is back',
      started({ status: { state: 'error', stateDetail: 'Silent.' } }),
      ['state started'],
    ],
    [
      'a silent host says nothing of a crash',
      { ...crash(t(-5)), observed: { ...crash(t(-5)).observed, isHostReachable: false } },
      ['state error: The host of the server does not answer. The server shows its state again when the host is back.'],
    ],
    [
      'a removed instance is made again and started',
      started({ observed: { instance: undefined } }),
      ['change {"operation":{"kind":"server.start","actor":"system:controllers"}}', 'state starting'],
    ],
    [
      'a removed instance of a stopped server is made again',
      started({ spec: { desiredPower: 'stopped' }, status: { state: 'stopped' }, observed: { instance: undefined } }),
      ['ensure Instance stopped 1', 'state stopped'],
    ],
    [
      'a failed creation stays an error',
      newborn({
        spec: { operation: operation('server.create', 'op-0') },
        status: {
          state: 'error',
          stateDetail: 'No.',
          operation: { ...ended('server.create').progress, status: 'failed' },
        },
        observed: { claims: undefined },
      }),
      ['state error: No.'],
    ],
    [
      'an operation that servers do not know fails',
      working('node.drain'),
      ['operation op-1 done failed: A server knows no operation node.drain.', 'state started'],
    ],
  ])('%s', (_why, world, expected) => expect(lines(world)).toEqual(expected))
})

describe('NetworkReachable', () => {
  const wayOutside = {
    displayName: 'Zone 1',
    region: 'eu-1',
    isClosed: false,
    capabilities: [],
    publicNetwork: { physicalNetwork: 'outside', addresses: ['198.51.100.2/24'], gateways: ['198.51.100.1'] },
  }
  test.each<readonly [string, World, object | undefined]>([
    ['is not said before the host has spoken', started(), undefined],
    [
      'names what is off without a network for servers',
      started({ observed: { hostFeatures: ['user-network-outbound', 'metadata-service'] } }),
      {
        status: 'False',
        reason: 'UserModeNetworking',
        message: expect.stringContaining('public addresses do not work'),
      },
    ],
    [
      'is true where the zone has one that leads outside',
      started({ observed: { zone: wayOutside, hostFeatures: ['public-network', 'metadata-service'] } }),
      { status: 'True', reason: 'PublicNetwork', message: '' },
    ],
  ])('%s', (_why, world, expected) => {
    const actionLines = statusOf(world)?.conditions?.find(({ type }) => type === 'NetworkReachable')
    expect(actionLines).toEqual(expected === undefined ? undefined : expect.objectContaining(expected))
  })
})

describe('Ready', () => {
  test.each<readonly [string, World, string]>([
    ['is true for a running server that shall run', started(), 'True'],
    [
      'is true for a stopped server that shall be off',
      started({
        spec: { desiredPower: 'stopped' },
        status: { state: 'stopped' },
        observed: { instance: instance({ power: 'stopped' }, { state: 'stopped' }) },
      }),
      'True',
    ],
    ['is false while an operation runs', working('server.restart'), 'False'],
    ['is false on a silent host', started({ observed: { isHostReachable: false } }), 'False'],
    [
      'is true again in the turn that ends the operation',
      newborn({ observed: { storage: storage('online'), instance: instance({}, {}, 'op-1') } }),
      'True',
    ],
  ])('%s', (_why, world, expected) => expect(ready(world)?.status).toBe(expected))
})
