/** When the machine of a database gets a root disk of a newer image, with a newer minor version of PostgreSQL. Its data
 *  is on another disk, which stays; its address stays too. The replacement is the operation `server.rebuild` of the
 *  machine, on trial: the old root disk comes back unless the machine becomes healthy. Pure. */
import { upgradeWindowAt } from '../../../domain/database/rules.ts'
import type { Machine } from '../managed-machine/index.ts'
import { databaseMachine } from './machine.ts'
import type { DatabaseObject, Observed } from './observed.ts'
import type { DatabaseStatus } from '../../../resources/database/index.ts'

export const isBeingUpgraded = (machine: Machine | undefined): boolean => machine?.diskExchange?.isOver === false

/** The replacement that is due; undefined while there is none. Where there is an archive, it needs a backup from this
 *  window: the newest state that could be restored; an image that has failed here is not tried again. */
export function upgradeDue(
  { spec, status }: DatabaseObject,
  { machines, archive }: Pick<Observed, 'machines' | 'archive'>,
  now: Date,
): { readonly serverId: string; readonly imageVersion: string } | undefined {
  const machine = databaseMachine(machines)
  const newest = machine?.newestImageVersion
  if (machine?.isHealthy !== true || machine.imageVersion === undefined || newest === undefined) return undefined
  if (machine.imageVersion >= newest || isBeingUpgraded(machine)) return undefined
  if ([failureOf(machine), status?.failedUpgrade].some((failed) => failed?.imageVersion === newest)) return undefined
  const began = upgradeWindowAt(spec.backupSchedule, now)?.toISOString()
  if (began === undefined) return undefined
  const backups = machine.report?.postgresql?.archive?.backups ?? []
  if (archive !== undefined && !backups.some(({ startedAt, isRestorable }) => isRestorable && startedAt >= began))
    return undefined
  return { serverId: machine.serverId, imageVersion: newest }
}

const failureOf = ({ diskExchange }: Machine): DatabaseStatus['failedUpgrade'] =>
  diskExchange === undefined || diskExchange.error === ''
    ? undefined
    : { imageVersion: diskExchange.imageVersion, error: diskExchange.error }

/** The image of its machine, and the one that failed, for as long as there is no newer one. */
export function upgradeStatus(
  { status }: DatabaseObject,
  machine: Machine | undefined,
): Pick<DatabaseStatus, 'imageVersion' | 'failedUpgrade'> {
  if (machine?.imageVersion === undefined) return {}
  const failed = failureOf(machine) ?? status?.failedUpgrade
  const isPast = machine.newestImageVersion !== undefined && failed?.imageVersion !== machine.newestImageVersion
  return { imageVersion: machine.imageVersion, failedUpgrade: isPast ? undefined : failed }
}
