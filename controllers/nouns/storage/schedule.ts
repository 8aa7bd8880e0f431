/** Scheduled backups of a storage. Its status says up to which slot its schedule has been dealt with; each slot has
 *  one backup, whose name follows from the slot, so that whoever makes it twice makes it once. Of slots that were
 *  missed the newest is made up for. When the clock has gone back, what was dealt with ahead of it is not made again.
 *  Pure. */
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

/** Beside whatever else is done; a schedule begins once the storage has a status. */
export function planSchedule(input: ReconcileInput): readonly StorageAction[] {
  const { storage, now } = input
  if (storage.status?.state === undefined) return []
  const text = storage.metadata.deletionTimestamp === undefined ? storage.spec.backupSchedule : undefined
  const schedule = text === undefined ? undefined : parseBackupSchedule(text)
  if (text === undefined || schedule === undefined || 'fault' in schedule)
    return storage.status?.schedule === undefined ? [] : [note(undefined)]
  const noted = storage.status?.schedule
  // A new schedule has missed nothing; and a clock that went back begins again from where it is.
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

/** One backup at a time, of a disk that is whole. */
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
