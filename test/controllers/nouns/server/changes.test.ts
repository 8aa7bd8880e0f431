/** Rows of the transitions of a server: stopped | rebuild, change_plan | stopped. Each row is one turn. */
import { describe, expect, test } from 'vitest'
import { plan } from '../../../../controllers/nouns/server/plan.ts'
import type { Observed } from '../../../../controllers/nouns/server/observed.ts'
import { defined } from '../../../../domain/defined.ts'
import type { MigrationProgress } from '../../../../resources/server/index.ts'
import { disk as diskThere, stray, TARGET, there, written } from './migration/worlds.ts'
import { actionLines, instance, newborn, NOW, storage, working, type World } from './worlds.ts'

type Row = readonly [string, World, readonly string[]]
const turn = ({ server, observed }: World) => actionLines(plan(server, observed, NOW))
const LATE = new Date(NOW.getTime() + 86_400_000)
const room = (cores: number, storageGibibytes: number) => ({ cores, memoryMebibytes: cores * 192, storageGibibytes })
const claims = newborn().observed.claims as NonNullable<Observed['claims']>
const holding = (cores: number, storageGibibytes: number, more: Partial<NonNullable<Observed['claims']>> = {}) => ({
  ...claims,
  ...more,
  placement: { ...claims.placement, ...room(cores, storageGibibytes) },
})
const off = instance({ power: 'stopped' }, { state: 'stopped' })
const disk = (sizeGibibytes: number, is: number, state: 'online' | 'error' = 'online') => ({
  ...storage(state, state === 'error' ? 'The disk of the host is full.' : undefined),
  spec: { ...storage(state).spec, sizeGibibytes },
  status: {
    ...storage(state, state === 'error' ? 'The disk of the host is full.' : undefined).status,
    state,
    sizeGibibytes: is,
  },
})

describe('stopped | change_plan | stopped', () => {
  const SMALL = { family: 'starter', ...room(2, 3), priceMonthlyCents: 200 } as const
  const change = { operationId: 'op-1', before: room(1, 1), after: room(2, 3) }
  const at = (
    observed: Partial<Observed>,
    migration?: MigrationProgress,
    desiredPower: 'running' | 'stopped' = 'stopped',
  ): World =>
    working(
      'server.change_plan',
      {
        spec: { plan: 'small', storageGibibytes: 3, desiredPower },
        status: { state: 'stopped', ...defined({ migration }) },
        observed: { plan: SMALL, instance: off, ...observed },
      },
      { previous_plan: 'tiny', previous_storage_gibibytes: '1' },
    )
  const rows: readonly Row[] = [
    [
      'takes the room first when nobody has',
      at({ claims }),
      ['effect resize', 'operation op-1 claimed', 'state stopped', 'wait for room in the zone'],
    ],
    [
      'then lets the disk grow',
      at({ claims: holding(2, 3, { sizeChange: change }), storage: disk(1, 1) }),
      ['ensure Storage', 'operation op-1 storage', 'state stopped'],
    ],
    [
      'waits for the disk',
      at({ claims: holding(2, 3, { sizeChange: change }), storage: disk(3, 1) }),
      ['operation op-1 storage', 'state stopped'],
    ],
    [
      'then gives back what is left over',
      at({ claims: holding(2, 3, { sizeChange: change }), storage: disk(3, 3) }),
      ['effect sized', 'operation op-1 sized', 'state stopped', 'wait for the room that is left over'],
    ],
    [
      'ends with the instance of the new size',
      at({ claims: holding(2, 3), storage: disk(3, 3) }),
      ['ensure Instance stopped 1', 'operation op-1 sized succeeded', 'state stopped'],
    ],
    [
      'fails when the disk cannot grow, and has its plan again',
      at({ claims: holding(2, 3, { sizeChange: change }), storage: disk(3, 1, 'error') }),
      [
        'effect sized',
        'change {"plan":"tiny","storageGibibytes":3,"desiredPower":"stopped"}',
        'operation op-1 storage failed: The disk of the host is full.',
        'state stopped',
      ],
    ],
    [
      'fails without its plan, and gives back',
      at({ plan: undefined }),
      [
        'effect sized',
        'change {"plan":"tiny","storageGibibytes":1,"desiredPower":"stopped"}',
        'operation op-1 claimed failed: There is no plan small.',
        'state stopped',
      ],
    ],
    [
      'fails without its disk, and gives back',
      at({ storage: undefined }),
      [
        'effect sized',
        'change {"plan":"tiny","storageGibibytes":1,"desiredPower":"stopped"}',
        'operation op-1 claimed failed: Creating the server did not finish. Delete it and create a new one.',
        'state error: Creating the server did not finish. Delete it and create a new one.',
      ],
    ],
  ]
  test.each(rows)('%s', (_why, world, expected) => expect(turn(world)).toEqual(expected))

  const target = { operationId: 'op-1', zone: 'zone-1', node: TARGET }
  const leaving = holding(1, 1, { sizeChange: change, target })
  const arrived: NonNullable<Observed['claims']> = {
    ...holding(2, 3, { sizeChange: change }),
    placement: { ...claims.placement, ...room(2, 3), node: TARGET },
  }
  const back = 'change {"plan":"tiny","storageGibibytes":1,"desiredPower":"stopped"}'
  const moves: readonly Row[] = [
    [
      'where another node has the room, that is written down first',
      at({ claims: leaving }),
      ['operation op-1 claimed', 'state stopped', 'wait for the next look'],
    ],
    [
      'then the disk goes there',
      at({ claims: leaving }, written('reserved')),
      ['effect shareKeys', 'operation op-1 claimed', 'state stopped', 'wait for the disk to be on node node-2'],
    ],
    [
      'then the server, standing still also when it is to be started',
      at({ claims: leaving, instance: undefined, targetVolume: diskThere('ready') }, written('detached'), 'running'),
      [
        'ensure Instance stopped 1',
        'operation op-1 claimed',
        'state stopped',
        'wait for node node-2 to take the server over',
      ],
    ],
    [
      'then its room',
      at(
        {
          claims: leaving,
          instance: undefined,
          targetVolume: diskThere('ready'),
          targetInstance: there({ power: 'stopped' }, { state: 'stopped' }, 'op-1'),
        },
        written('detached'),
      ),
      ['effect switch', 'operation op-1 claimed', 'state stopped', 'wait for the next look'],
    ],
    [
      'waits for the node before',
      at({ claims: arrived, strayInstances: [stray()], storage: disk(1, 1) }, written('switched')),
      ['remove Instance', 'operation op-1 claimed', 'state stopped'],
    ],
    [
      'then the disk grows where it is now',
      at({ claims: arrived, storage: disk(1, 1) }, written('switched')),
      ['ensure Storage', 'operation op-1 storage', 'state stopped'],
    ],
    [
      'what cannot be moved is undone first',
      at({ claims: leaving, targetVolume: diskThere('error') }, written('detached')),
      ['operation op-1 claimed', 'state stopped', 'wait for the next look'],
    ],
    [
      'and has the plan that it had',
      at(
        { claims: holding(1, 1, { sizeChange: change }), storage: disk(1, 1) },
        written('aborting', { detail: 'Disk full.' }),
      ),
      ['effect sized', back, 'operation op-1 claimed failed: Disk full.', 'state stopped'],
    ],
  ]
  test.each(moves)('%s', (_why, world, expected) => expect(turn(world)).toEqual(expected))

  test('what is not done in time leaves the server as it was, and the disk as it has become', () => {
    const { server, observed } = at({ claims: holding(2, 3, { sizeChange: change }), storage: disk(3, 1) })
    expect(actionLines(plan(server, observed, LATE))).toEqual([
      'effect sized',
      'change {"plan":"tiny","storageGibibytes":3,"desiredPower":"stopped"}',
      'operation op-1 storage failed: It was not done in time: still waiting for the boot storage to grow.',
      'state stopped',
    ])
  })
})

describe('stopped | rebuild | stopped', () => {
  const newDisk = (state: 'creating' | 'online' | 'error') => ({
    ...storage(state, state === 'error' ? 'No such template.' : undefined),
    metadata: { ...storage(state).metadata, name: 'op-1', uid: 'storage-uid-2' },
  })
  const at = (observed: Partial<Observed>, { isExchanged = false, isOn = false } = {}): World =>
    working(
      'server.rebuild',
      {
        spec: {
          template: 'other-linux',
          desiredPower: isOn ? 'running' : 'stopped',
          ...(isExchanged ? { bootStorageId: 'op-1' } : {}),
        },
        status: { state: isOn ? 'started' : 'stopped' },
        observed: {
          instance: isOn ? instance({}, {}) : off,
          ...(isExchanged ? { storage: newDisk('online') } : {}),
          ...observed,
        },
      },
      { previous_template: 'tiny-linux', previous_boot_storage: 'web-id' },
    )
  const onNew = (
    power: 'running' | 'stopped',
    status: Parameters<typeof instance>[1],
    madeFor = 'op-0',
    incarnation = 1,
  ) =>
    instance(
      { power, incarnation, template: 'other-linux', disks: [{ volume: 'storage-uid-2', serial: 'op1' }] },
      status,
      madeFor,
    )
  const rows: readonly Row[] = [
    [
      'stops a guest that runs',
      at({}, { isOn: true }),
      ['ensure Instance stopped 1 soft 60s hard', 'operation op-1 stopped', 'state stopping'],
    ],
    ['makes the new disk beside the old one', at({}), ['ensure Storage', 'operation op-1 storage', 'state stopped']],
    ['waits for the new disk', at({ newStorage: newDisk('creating') }), ['operation op-1 storage', 'state stopped']],
    [
      'gives everything back as it was when the new disk cannot be made',
      at({ newStorage: newDisk('error') }),
      [
        'remove Storage',
        'change {"template":"tiny-linux","customImageId":null,"userDataSecretName":null,"initScriptId":null}',
        'operation op-1 storage failed: No such template. The server has its boot storage as before.',
        'state stopped',
      ],
    ],
    [
      'then exchanges them',
      at({ newStorage: newDisk('online') }),
      [
        'change {"bootStorageId":"op-1"}',
        'operation op-1 instance',
        'state stopped',
        'wait for the server to take the new boot storage',
      ],
    ],
    [
      'tells the node',
      at({ oldStorage: storage('online') }, { isExchanged: true }),
      [
        'ensure Instance stopped 1',
        'operation op-1 instance',
        'state stopped',
        'wait for the instance to have the new disk',
      ],
    ],
    [
      'then lets the old disk go',
      at({ oldStorage: storage('online'), instance: onNew('stopped', { state: 'stopped' }) }, { isExchanged: true }),
      ['remove Storage', 'operation op-1 instance', 'state stopped', 'wait for the old boot storage to go'],
    ],
    [
      'ends off when it was off',
      at({ instance: onNew('stopped', { state: 'stopped' }) }, { isExchanged: true }),
      ['operation op-1 started succeeded', 'state stopped'],
    ],
    [
      'starts the guest when it ran',
      at({ instance: onNew('stopped', { state: 'stopped' }) }, { isExchanged: true, isOn: true }),
      ['ensure Instance running 2', 'operation op-1 started', 'state starting'],
    ],
    [
      'ends when the guest runs',
      at({ instance: onNew('running', { incarnation: 2 }, 'op-1', 2) }, { isExchanged: true, isOn: true }),
      ['operation op-1 started succeeded', 'state started'],
    ],
    [
      'fails when the guest cannot be started, and says what there is',
      at(
        { instance: onNew('running', { incarnation: 2, state: 'error', detail: 'No room.' }, 'op-1', 2) },
        { isExchanged: true, isOn: true },
      ),
      [
        'change {"desiredPower":"stopped"}',
        'ensure Instance stopped 2',
        'operation op-1 started failed: No room. The boot storage is the new one, the old one was deleted.',
        'state stopped',
      ],
    ],
  ]
  test.each(rows)('%s', (_why, world, expected) => expect(turn(world)).toEqual(expected))
})
