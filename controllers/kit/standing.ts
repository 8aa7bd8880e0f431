/** Changes that cost and came past the API: the account must be allowed to make them, whatever admission allowed. */
import { holdsQuotas, requireStanding } from '../../db/account/index.ts'
import { machineOwnerOf } from '../../domain/managed-machine/rules.ts'
import { isPlatformAccount } from '../../domain/account/platform-account.ts'
import { conflict, Problem } from '../../domain/problem.ts'
import type { KubeObject } from '../../kit/kube/object.ts'
import type { Operable } from '../../resources/operation/index.ts'
import { orUnavailable } from './outage.ts'
import { isEditOfPerson } from './operation/direct-edit.ts'
import { activeOperation } from './operation/stanza.ts'
import type { Parts } from './parts.ts'

/** Throws 402, or 403 without a verified owner, when a person's edit began the operation under way and the account may
 *  make nothing that costs now. What a request began the API has judged; what the platform does by itself, like boot
 *  storages and backups of a schedule, belongs to what runs already. Throws Unavailable. */
export async function requireStandingOfEdit(
  { db, clock, areAddressesConfirmed }: Pick<Parts, 'db' | 'clock' | 'areAddressesConfirmed'>,
  root: KubeObject & Operable,
  accountId: string,
): Promise<void> {
  const operation = activeOperation(root)
  if (operation !== undefined && isEditOfPerson(operation))
    await orUnavailable(requireStanding(db, accountId, { now: clock.now(), areAddressesConfirmed }))
}

/** Whether the account may make more of what costs: what the platform does by itself is no way around that. The
 *  platform's own accounts always may. Throws Unavailable. */
export async function mayGrow(
  { db, clock, areAddressesConfirmed }: Pick<Parts, 'db' | 'clock' | 'areAddressesConfirmed'>,
  accountId: string,
): Promise<boolean> {
  if (isPlatformAccount(accountId)) return true
  try {
    await orUnavailable(requireStanding(db, accountId, { now: clock.now(), areAddressesConfirmed }))
    return true
  } catch (error) {
    if (error instanceof Problem) return false
    throw error
  }
}

/** A managed machine belongs to a noun whose making was judged, and is exchanged whatever the account owes. Throws the
 *  Problem `state_not_allowed` (409) for one of a noun that nobody has granted: somebody made it past admission. What
 *  claims to be a machine of a noun that is there, and is not, that noun's controller removes. */
export async function requireMachineOwner(
  { db }: Pick<Parts, 'db'>,
  { accountId, managedBy }: { readonly accountId: string; readonly managedBy: string },
): Promise<void> {
  const owner = machineOwnerOf(managedBy)
  const isGranted =
    owner !== undefined && (await orUnavailable(holdsQuotas(db, { accountId, holder: `${owner.type}/${owner.id}` })))
  if (!isGranted)
    throw conflict('state_not_allowed', 'The server claims to be run for something that the account does not have.')
}
