/** A rebuild on trial, each row one turn: the old boot storage stays until the machine is well with the new one, and
 *  comes back when it is not. */
import { expect, test } from 'vitest'
import { plan } from '../../../../../controllers/nouns/server/plan.ts'
import type { Observed } from '../../../../../controllers/nouns/server/observed.ts'
import { defined } from '../../../../../domain/defined.ts'
import { actionLines, after, instance, NOW, storage, working, type World } from '../worlds.ts'

const STARTED = after(60).toISOString()
const well = (at: number): NonNullable<Observed['machine']> => ({
  isHealthy: true,
  detail: '',
  reportedAt: after(at).toISOString(),
})
const ILL = { ...well(90), isHealthy: false, detail: 'PostgreSQL does not answer.' }
const old = storage('online')
const going = { ...old, metadata: { ...old.metadata, deletionTimestamp: NOW.toISOString() } }
const newDisk = { ...old, metadata: { ...old.metadata, name: 'op-1', uid: 'storage-uid-2' } }
const disk = { disks: [{ volume: 'storage-uid-2', serial: 'op1' }] }
const RUNS = { incarnation: 2, state: 'running', startedAt: STARTED } as const
/** Its guest with the new disk. */
const onNew = (status: Parameters<typeof instance>[1] = RUNS, power: 'running' | 'stopped' = 'running') =>
  instance({ power, incarnation: 2, ...disk }, status, 'op-1', 2)
/** With the old one. */
const onOld = (incarnation: number, power: 'running' | 'stopped', status: Parameters<typeof instance>[1]) =>
  instance({ power, incarnation }, status, 'op-1', 3)

const at = (observed: Partial<Observed>, goneBack?: string, isOnNew = true): World =>
  working(
    'server.rebuild',
    {
      spec: { desiredPower: 'running', ...(isOnNew ? { bootStorageId: 'op-1' } : { bootStorageId: 'web-id' }) },
      status: { state: 'starting' },
      observed: { storage: isOnNew ? newDisk : old, oldStorage: old, newStorage: newDisk, ...observed },
    },
    {
      image_version: '2',
      previous_template: 'tiny-linux',
      previous_boot_storage: 'web-id',
      ...defined({ gone_back: goneBack }),
    },
  )
const turn = ({ server, observed }: World, now = NOW) => actionLines(plan(server, observed, now))
const LATE = after(7_200)
const DELETED = { metadata: { deletionTimestamp: NOW.toISOString() } }
const START = ['operation op-1 started', 'state starting']
const BACK = 'change {"operation":{}}'

test.each<[string, World, readonly string[], Date?]>([
  [
    'keeps the old disk while the guest starts',
    at({ instance: onNew({ incarnation: 1, state: 'stopped' }) }),
    [...START],
  ],
  ['keeps it while the machine says nothing', at({ instance: onNew() }), START],
  ['keeps it while the machine is not well', at({ instance: onNew(), machine: ILL }), START],
  ['keeps it by the word of the guest before', at({ instance: onNew(), machine: well(59) }), START],
  [
    'lets it go once the machine is well',
    at({ instance: onNew(), machine: well(61) }),
    ['remove Storage', 'operation op-1 started', 'state started', 'wait for the old boot storage to go'],
  ],
  [
    'is done when that is on its way out, whatever the machine says then',
    at({ instance: onNew(), machine: ILL, oldStorage: going }),
    ['operation op-1 started succeeded', 'state started'],
  ],
  [
    'goes back when the host cannot start the guest',
    at({ instance: onNew({ ...RUNS, state: 'error', detail: 'No kernel.' }) }),
    [BACK, ...START, 'wait for the old boot storage to come back'],
  ],
  [
    'goes back when the machine is not well in time',
    at({ instance: onNew(), machine: ILL }),
    [BACK, ...START, 'wait for the old boot storage to come back'],
    LATE,
  ],
  [
    'does not go back to a disk that is on its way out',
    at({ instance: onNew({ incarnation: 1, state: 'stopped' }), oldStorage: going }),
    START,
    LATE,
  ],
  [
    'ends when its host does not answer, so that the machine can recover',
    at({ instance: onNew(), machine: ILL, isHostReachable: false }),
    ['operation op-1 started failed'],
    LATE,
  ],
  [
    'on its way back ends the guest first',
    at({ instance: onNew() }, 'Why.'),
    ['ensure Instance stopped 2 soft 60s hard', 'operation op-1 started', 'state stopping'],
  ],
  ['waits for its end', at({ instance: onNew(RUNS, 'stopped') }, 'Why.'), ['operation op-1 started', 'state stopping']],
  [
    'then takes the old disk',
    at({ instance: onNew({ incarnation: 2, state: 'stopped' }, 'stopped') }, 'Why.'),
    [
      'change {"bootStorageId":"web-id"}',
      'operation op-1 started',
      'state stopped',
      'wait for the server to take its old boot storage',
    ],
  ],
  [
    'tells the node',
    at({ instance: onNew({ incarnation: 2, state: 'stopped' }, 'stopped') }, 'Why.', false),
    [
      'ensure Instance stopped 2',
      'operation op-1 instance',
      'state stopped',
      'wait for the instance to have the new disk',
    ],
  ],
  [
    'starts the guest',
    at({ instance: onOld(2, 'stopped', { incarnation: 2, state: 'stopped' }) }, 'Why.', false),
    ['ensure Instance running 3', ...START],
  ],
  [
    'lets the new disk go',
    at({ instance: onOld(3, 'running', { ...RUNS, incarnation: 3 }) }, 'Why.', false),
    ['remove Storage', ...START, 'wait for the new boot storage to go'],
  ],
  [
    'is not over before the machine is well again, however late it is',
    at({ instance: onOld(3, 'running', { ...RUNS, incarnation: 3 }), newStorage: undefined }, 'Why.', false),
    START,
    after(1_200),
  ],
  [
    'has failed then, with the reason',
    at(
      { instance: onOld(3, 'running', { ...RUNS, incarnation: 3 }), newStorage: undefined, machine: well(61) },
      'Why.',
      false,
    ),
    ['operation op-1 started failed: Why. The server has its boot storage as before.', 'state started'],
    LATE,
  ],
  [
    'leaves a machine that does not answer again to its owner',
    at({ instance: onOld(3, 'running', { ...RUNS, incarnation: 3 }), newStorage: undefined }, 'Why', false),
    ['operation op-1 started failed: Why. The server has its boot storage as before.', 'state started'],
    LATE,
  ],
])('%s', (_why, world, expected, now = NOW) => {
  const lines = turn(world, now).filter(
    (line) => !line.startsWith('wait for its machine') && line !== 'wait for the host',
  )
  for (const line of expected)
    expect(
      lines.some((one) => one.startsWith(line)),
      `${line} in ${lines.join(' | ')}`,
    ).toBe(true)
  const does = (each: readonly string[]) => each.filter((line) => /^(ensure|remove|change)/.test(line)).length
  expect(does(lines), lines.join(' | ')).toBe(does(expected))
})

test('why it goes back is written down before anything is done', () => {
  const { server, observed } = at({ instance: onNew(), machine: ILL })
  const patches = plan(server, observed, LATE).flatMap((action) => (action.do === 'change' ? [action.patch] : []))
  const reason = expect.stringMatching(/not done in time.*PostgreSQL does not answer/)
  expect(patches).toEqual([{ spec: { operation: { arguments: { gone_back: reason } } } }])
})

test('it ends when its machine is deleted, whose owner takes away what would answer; both disks go', () => {
  const { server, observed } = at({ instance: onNew() })
  const deleted = { ...server, metadata: { ...server.metadata, ...DELETED.metadata } }
  const begun = { ...deleted, status: { ...deleted.status, operation: { id: 'op-1', status: 'running' } } } as never
  const patches = plan(begun, observed, NOW).flatMap((action) => (action.do === 'change' ? [action.patch] : []))
  expect(patches).toEqual([{ spec: { operation: expect.objectContaining({ kind: 'server.delete' }) } }])
  const left = working('server.delete', {
    ...DELETED,
    observed: { instance: undefined, storage: newDisk, spareStorages: [old] },
  })
  const gone = plan(left.server, left.observed, NOW).flatMap((action) =>
    action.do === 'remove' ? [action.key.name] : [],
  )
  expect(gone).toEqual(['op-1', old.metadata.name])
})
