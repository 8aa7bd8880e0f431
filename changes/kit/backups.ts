/** Requirements of backup schedules and backup copies on zones. */
import { parseBackupSchedule } from '../../domain/backup/schedule.ts'
import { badField, zoneLacks } from '../../domain/problem.ts'
import { Zone } from '../../resources/catalog/index.ts'
import type { World } from './world.ts'

/** Throws 409 when no host of the zone has a store for backups. */
export function requireBackupZone(world: World, zone: string): void {
  if (world.find(Zone, { name: zone })?.status?.hasBackups !== true)
    throw zoneLacks('backups', `The zone ${zone} has no place for backups.`)
}

interface BackupSchedule {
  readonly zone: string
  readonly backupSchedule?: string | undefined
  readonly backupCopyZone?: string | undefined
}

/** Throws 400 for an invalid schedule. */
export function requireReadableSchedule(
  { backupSchedule }: Pick<BackupSchedule, 'backupSchedule'>,
  field = 'backupSchedule',
): void {
  if (backupSchedule === undefined) return
  const read = parseBackupSchedule(backupSchedule)
  if ('fault' in read) throw badField(field, read.fault)
}

/** Throws 409 for a schedule in a zone that stores no backups. */
export function requireScheduleZone(world: World, { backupSchedule, zone }: BackupSchedule): void {
  if (backupSchedule !== undefined) requireBackupZone(world, zone)
}

/** Throws 400 for a zone to which backups of another cannot be copied, and 409 when none of its hosts reaches those
 *  backups. */
export function requireCopyZone(world: World, { zone, backupCopyZone: copyZone }: BackupSchedule): void {
  if (copyZone === undefined) return
  const [own, other] = [zone, copyZone].map((name) => world.find(Zone, { name }))
  if (other === undefined) throw badField('backupCopyZone', 'there is no such zone')
  if (zone === copyZone || own?.spec.region !== other.spec.region)
    throw badField('backupCopyZone', `must be another zone of the region of zone ${zone}`)
  requireBackupZone(world, copyZone)
  if (other.status?.backupSources?.includes(zone) !== true)
    throw zoneLacks('backups', `The hosts of zone ${copyZone} do not reach the backups of ${zone}.`)
}
