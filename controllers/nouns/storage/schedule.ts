/** Scheduled backups of a storage. Its status records the last slot of its schedule that has been handled. Each slot
 *  has one backup, whose name is derived from the slot, so that it is never created twice. Of missed slots only the
 *  newest is made up for. When the clock went back, slots that were handled before are not repeated. Pure. */
import { type BackupSchedule, dueSlot, nextSlot, parseBackupSchedule } from '../../../domain/backup/schedule.ts'
import { BACKUP_RETENTION_DAYS_DEFAULT, type StorageStatus } from '../../../resources/storage/index.ts'
import { derivedId } from '../../../domain/uuid.ts'
import type { StorageAction } from './actions.ts'
import type { ReconcileInput } from './decision.ts'
import { uidOf } from './volumes.ts'

/** The clock may be set meanwhile. */
const LOOK_SECONDS_MAXIMUM = 600
const BUSY_SECONDS = 30
const DAY_MILLISECONDS = 86_400_000

/** In addition to everything else; a schedule starts once the storage has a status. */
export function planSchedule(input: ReconcileInput): readonly StorageAction[] {
  const { storage, now } = input
  if (storage.status?.state === undefined) return []
  const text = storage.metadata.deletionTimestamp === undefined ? storage.spec.backupSchedule : undefined
  const schedule = text === undefined ? undefined : parseBackupSchedule(text)
  if (text === undefined || schedule === undefined || 'fault' in schedule)
    return storage.status?.schedule === undefined ? [] : [note(undefined)]
  const noted = storage.status?.schedule
  // A new schedule has missed nothing; and when the clock went back, it starts again from the present.
  if (noted?.text !== text || Date.parse(noted.doneUntil) > now.getTime())
    return [note({ text, doneUntil: now.toISOString() }), waitForNext(schedule, now)]
  const slot = dueSlot(schedule, { after: new Date(noted.doneUntil), now })
  if (slot === undefined) return [waitForNext(schedule, now)]
  return isReady(input)
    ? [backUp(input, slot), note({ text, doneUntil: slot.toISOString() }), waitForNext(schedule, now)]
    : [{ do: 'wait', seconds: BUSY_SECONDS, for: 'the storage to be ready for its backup' }]
}

const note = (schedule: StorageStatus['schedule']): StorageAction => ({ do: 'status', status: { schedule } })

const waitForNext = (schedule: BackupSchedule, now: Date): StorageAction => {
  const seconds = ((nextSlot(schedule, now)?.getTime() ?? Number.POSITIVE_INFINITY) - now.getTime()) / 1000
  return { do: 'wait', seconds: Math.min(Math.ceil(seconds), LOOK_SECONDS_MAXIMUM), for: 'the next scheduled backup' }
}

/** One backup at a time, of a complete disk. */
const isReady = ({ storage: { status }, observed }: ReconcileInput): boolean =>
  status?.state === 'online' && observed.restore?.requested === undefined && observed.isBackingUp !== true

function backUp({ storage, observed }: ReconcileInput, slot: Date): StorageAction {
  const { backupRetentionDays = BACKUP_RETENTION_DAYS_DEFAULT, zone } = storage.spec
  return {
    do: 'effect',
    name: 'backUp',
    input: {
      backup: derivedId(`${uidOf(storage)}/backup/${slot.toISOString()}`),
      zone,
      accountId: observed.accountId ?? '',
      expiresAt: new Date(slot.getTime() + backupRetentionDays * DAY_MILLISECONDS).toISOString(),
    },
  }
}
