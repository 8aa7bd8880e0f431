/** When the machine of a database gets a root disk of a newer image. */
import { describe, expect, test } from 'vitest'
import { isBeingUpgraded, upgradeDue, upgradeStatus } from '../../../../controllers/nouns/database/upgrade.ts'
import type { DatabaseObject, Observed } from '../../../../controllers/nouns/database/observed.ts'
import type { Machine } from '../../../../controllers/nouns/managed-machine/index.ts'
import { DATABASE_ROLE, upgradeWindowAt } from '../../../../domain/database/rules.ts'

const at = (time: string): Date => new Date(`2026-01-02T${time}:00.000Z`)
const BACKUP = { label: 'a', startedAt: '2026-01-02T03:00:01.000Z', isRestorable: true }
const EARLIER = { ...BACKUP, startedAt: '2026-01-01T03:00:01.000Z' }
const report = (backups: readonly object[]) => ({ postgresql: { archive: { backups } } })
const FAILED = { imageVersion: '2', isOver: true, error: 'It did not answer.' }

const machine = (more: object = {}): Machine =>
  ({
    role: DATABASE_ROLE,
    serverId: 'machine-1',
    isDeleting: false,
    isHealthy: true,
    imageVersion: '1',
    newestImageVersion: '2',
    diskExchange: undefined,
    report: report([BACKUP]),
    ...more,
  }) as unknown as Machine // the rest is not read
const database = (status: object = {}): DatabaseObject =>
  ({ spec: { backupSchedule: '0 3 * * *' }, status }) as unknown as DatabaseObject // the rest is not read
const ARCHIVE = {} as Observed['archive'] // that there is one is all that is read

interface Case {
  readonly machines?: readonly Machine[]
  readonly status?: object
  readonly now?: Date
  readonly archive?: Observed['archive']
}
const due = ({ machines = [machine()], status = {}, now = at('03:10'), ...rest }: Case) =>
  upgradeDue(database(status), { machines, archive: 'archive' in rest ? rest.archive : ARCHIVE }, now)

describe('a newer image', () => {
  test.each<[string, Case]>([
    ['in the window, after its backup', {}],
    ['to the end of the window', { now: at('04:59') }],
    ['without a backup where there is no archive', { archive: undefined, machines: [machine({ report: undefined })] }],
    ['after another one has failed', { status: { failedUpgrade: { imageVersion: '1.5', error: '' } } }],
    ['after an exchange that went well', { machines: [machine({ diskExchange: { ...FAILED, error: '' } })] }],
  ])('is due %s', (_when, given) => expect(due(given)).toEqual({ serverId: 'machine-1', imageVersion: '2' }))

  test.each<[string, Case]>([
    ['without a machine', { machines: [] }],
    ['on a machine that is not well', { machines: [machine({ isHealthy: false })] }],
    ['when it is no newer', { machines: [machine({ imageVersion: '2' })] }],
    ['when it is older', { machines: [machine({ imageVersion: '3' })] }],
    ['while nobody says what the newest is', { machines: [machine({ newestImageVersion: undefined })] }],
    ['while nobody says what it has', { machines: [machine({ imageVersion: undefined })] }],
    ['while one is under way', { machines: [machine({ diskExchange: { ...FAILED, isOver: false, error: '' } })] }],
    ['when it has just failed', { machines: [machine({ diskExchange: FAILED })] }],
    ['when it has failed once', { status: { failedUpgrade: { imageVersion: '2', error: '' } } }],
    ['before the window', { now: at('02:59') }],
    ['after the window', { now: at('05:00') }],
    ['before the backup of this window', { machines: [machine({ report: report([EARLIER]) })] }],
    [
      'with a backup that cannot be restored',
      { machines: [machine({ report: report([{ ...BACKUP, isRestorable: false }]) })] },
    ],
  ])('is not due %s', (_when, given) => expect(due(given)).toBeUndefined())
})

test('the window starts with the daily backup, and may end the next day', () => {
  expect(upgradeWindowAt('30 23 * * *', at('00:30'))?.toISOString()).toBe('2026-01-01T23:30:00.000Z')
  expect(upgradeWindowAt('30 23 * * *', at('01:30'))).toBeUndefined()
  expect(upgradeWindowAt('30 23 * * *', at('23:30'))?.toISOString()).toBe('2026-01-02T23:30:00.000Z')
})

test('the image that failed is remembered until there is a newer one', () => {
  const failed = { imageVersion: '2', error: FAILED.error }
  expect(upgradeStatus(database(), machine({ diskExchange: FAILED }))).toEqual({
    imageVersion: '1',
    failedUpgrade: failed,
  })
  // Another operation of its machine has taken the place of the exchange.
  expect(upgradeStatus(database({ failedUpgrade: failed }), machine())).toMatchObject({ failedUpgrade: failed })
  const newer = machine({ newestImageVersion: '3' })
  expect(upgradeStatus(database({ failedUpgrade: failed }), newer)).toEqual({
    imageVersion: '1',
    failedUpgrade: undefined,
  })
  expect(upgradeStatus(database(), undefined)).toEqual({})
})

test('it is under way until its operation is over', () => {
  expect([undefined, machine(), machine({ diskExchange: FAILED })].map(isBeingUpgraded)).toEqual([false, false, false])
  expect(isBeingUpgraded(machine({ diskExchange: { ...FAILED, isOver: false } }))).toBe(true)
})
