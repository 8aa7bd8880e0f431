/** When scheduled backups are made, and how what was missed is made up for. */
import { expect, test } from 'vitest'
import type { Observed } from '../../../../controllers/nouns/storage/observed.ts'
import { planSchedule } from '../../../../controllers/nouns/storage/schedule.ts'
import { defined } from '../../../../domain/defined.ts'
import type { StorageSpec, StorageStatus } from '../../../../resources/storage/index.ts'

const DAILY = '0 3 * * *'
const at = (time: string) => new Date(`2026-11-${time}:00Z`)
const noted = (doneUntil: string, text = DAILY): StorageStatus['schedule'] => ({
  text,
  doneUntil: at(doneUntil).toISOString(),
})

interface World {
  readonly now: string
  readonly spec?: Partial<StorageSpec>
  readonly schedule?: StorageStatus['schedule']
  /** `none`: the storage has no status yet. */
  readonly state?: StorageStatus['state'] | 'none'
  readonly observed?: Partial<Observed>
  readonly isDeleting?: boolean
}
const plan = ({ now, spec, schedule, state = 'online', observed, isDeleting = false }: World) =>
  planSchedule({
    storage: {
      apiVersion: 'svccloud.dev/v1alpha1',
      kind: 'Storage',
      metadata: {
        name: 'web',
        namespace: 'acct-1',
        uid: 's1',
        ...(isDeleting ? { deletionTimestamp: '2026-11-01T00:00:00Z' } : {}),
      },
      spec: {
        zone: 'z1',
        title: '',
        sizeGibibytes: 3,
        tier: 'standard',
        isBoot: false,
        labels: {},
        isProtected: false,
        backupSchedule: DAILY,
        ...spec,
      },
      ...(state === 'none' ? {} : { status: { state, ...defined({ schedule }) } }),
    },
    observed: {
      accountId: '1',
      node: 'n1',
      region: 'eu',
      volumes: [],
      usedOn: [],
      isGuestOff: false,
      pools: [],
      isInUse: true,
      ...observed,
    },
    now: at(now),
  }).map((action) => {
    if (action.do === 'status') {
      const { schedule: next } = action.status as Pick<StorageStatus, 'schedule'>
      return next === undefined ? 'forgets' : `done until ${next.doneUntil.slice(8, 16)}`
    }
    if (action.do === 'wait') return `waits ${action.seconds} for ${action.for}`
    return action.do === 'effect' && action.name === 'backUp'
      ? `backs up until ${action.input.expiresAt.slice(8, 16)}`
      : action.do
  })

const NEXT = 'waits 600 for the next scheduled backup'
test.each<readonly [string, World, readonly string[]]>([
  ['does nothing without a schedule', { now: '20T12:00', spec: { backupSchedule: undefined } }, []],
  [
    'forgets a schedule that was taken away',
    { now: '20T12:00', spec: { backupSchedule: undefined }, schedule: noted('20T03:00') },
    ['forgets'],
  ],
  ['begins none before the storage has a status', { now: '20T12:00', state: 'none' }, []],
  ['begins a new schedule from now on', { now: '20T12:00' }, ['done until 20T12:00', NEXT]],
  [
    'begins anew with another schedule',
    { now: '20T12:00', schedule: noted('10T03:00', '0 5 * * *') },
    ['done until 20T12:00', NEXT],
  ],
  [
    'waits for the next slot',
    { now: '20T02:59', schedule: noted('19T03:00') },
    ['waits 60 for the next scheduled backup'],
  ],
  [
    'backs up at the slot and keeps it for a week',
    { now: '20T03:00', schedule: noted('19T03:00') },
    ['backs up until 27T03:00', 'done until 20T03:00', NEXT],
  ],
  [
    'keeps it as long as the storage says, from the slot on',
    { now: '20T03:07', schedule: noted('19T03:00'), spec: { backupRetentionDays: 2 } },
    ['backs up until 22T03:00', 'done until 20T03:00', NEXT],
  ],
  [
    'makes up for what was missed once',
    { now: '20T12:00', schedule: noted('10T03:00') },
    ['backs up until 27T03:00', 'done until 20T03:00', NEXT],
  ],
  ['makes nothing twice', { now: '20T12:00', schedule: noted('20T03:00') }, [NEXT]],
  [
    'goes on when the clock was ahead and has gone back',
    { now: '20T02:00', schedule: noted('25T03:00') },
    ['done until 20T02:00', NEXT],
  ],
  [
    'waits for the backup before it',
    { now: '20T03:00', schedule: noted('19T03:00'), observed: { isBackingUp: true } },
    ['waits 30 for the storage to be ready for its backup'],
  ],
  [
    'waits while a backup is being restored',
    {
      now: '20T03:00',
      schedule: noted('19T03:00'),
      observed: { restore: { requested: { backup: 'b', operationId: 'o' } } },
    },
    ['waits 30 for the storage to be ready for its backup'],
  ],
  [
    'backs nothing up that is not whole',
    { now: '20T03:00', schedule: noted('19T03:00'), state: 'error' },
    ['waits 30 for the storage to be ready for its backup'],
  ],
  ['ends with the storage', { now: '20T03:00', schedule: noted('19T03:00'), isDeleting: true }, ['forgets']],
])('%s', (_name, world, expected) => {
  expect(plan(world)).toEqual(expected)
})
