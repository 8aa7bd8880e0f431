/** Changes that cost and did not use the API: the account must be allowed to make them, whatever admission allowed. */
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

/** Throws 402, or 403 without a verified owner, when a person's edit started the operation under way and the account
 *  may create nothing that costs now. The API has judged what a request started. What the platform does by itself, like
 *  boot storages and scheduled backups, belongs to what runs already. Throws Unavailable. */
export async function requireStandingOfEdit(
  { db, clock, areAddressesConfirmed }: Pick<Parts, 'db' | 'clock' | 'areAddressesConfirmed'>,
  root: KubeObject & Operable,
  accountId: string,
): Promise<void> {
  const operation = activeOperation(root)
  if (operation !== undefined && isEditOfPerson(operation))
    await orUnavailable(requireStanding(db, accountId, { now: clock.now(), areAddressesConfirmed }))
}

/** Whether the account may create more of what costs: what the platform does by itself must not be a way around that.
 *  The platform's own accounts always may. Throws Unavailable. */
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

/** A managed machine belongs to a noun whose creation was judged, and is replaced whatever the account owes. Throws the
 *  Problem `state_not_allowed` (409) for a machine of a noun that nobody has granted: somebody created it past
 *  admission. A server that only claims to be a machine of an existing noun is removed by that noun's controller. */
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
