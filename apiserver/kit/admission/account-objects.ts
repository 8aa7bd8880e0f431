/** Admission rules for everything in the namespace of an account. */
import { badRequest } from '../../../domain/problem.ts'
import * as account from '../../../db/account/index.ts'
import { accountExists } from '../../../db/server/index.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { accountOfNamespace } from '../../../resources/index.ts'
import type { AdmissionParts, AdmissionRules, AdmittedChange } from './kind.ts'

/** The account of the object's namespace. Throws 400 when there is none; `plural` names such objects for people. */
export async function requireAccount(
  { db }: Pick<AdmissionParts, 'db'>,
  { metadata: { namespace = '' } }: KubeObject,
  plural: string,
): Promise<string> {
  const accountId = accountOfNamespace(namespace)
  if (accountId === undefined || !(await accountExists(db, accountId)))
    throw badRequest(`The namespace belongs to no account: ${plural} live in acct-<id of the account>.`)
  return accountId
}

/** Throws 403 unless an owner's address is verified. */
export const requireVerifiedOwner = ({ db, areAddressesConfirmed }: AdmissionParts, accountId: string): Promise<void> =>
  account.requireVerifiedOwner(db, accountId, { areAddressesConfirmed })

/** Throws 403 unless an owner's address is verified, and 402 when the account may not create billable resources. */
export const requireStanding = (
  { db, clock, areAddressesConfirmed }: AdmissionParts,
  accountId: string,
): Promise<void> => account.requireStanding(db, accountId, { now: clock.now(), areAddressesConfirmed })

/** The rule of a deletion that is an operation: `validate` throws the Problem that the API would answer. Requesting
 *  again what is already under way is not an error. */
export const admitDeletion =
  <Spec, Status>(
    action: AdmittedChange['action'],
    validate: (before: KubeObject<Spec, Status>, parts: AdmissionParts) => void | Promise<void>,
  ): NonNullable<AdmissionRules<Spec, Status>['delete']> =>
  async (parts, before) => {
    if (before.metadata.deletionTimestamp !== undefined) return []
    await validate(before, parts)
    return [{ action, changes: [] }]
  }
