/** Accounts: their members, their limits, and their credits and debts. */
export {
  type UserRow,
  addMember,
  createAccount,
  findAccountName,
  findRole,
  findUser,
  findUserByEmail,
  lockUser,
  openAccount,
} from './accounts.ts'
export {
  type CreditRow,
  addCredit,
  creditBalance,
  creditState,
  listCouponAttempts,
  listCredits,
  listExpiringCredits,
  nextCreditExpiry,
  redeemCoupon,
} from './credits.ts'
export {
  type InvitationRow,
  type MemberRow,
  createInvitation,
  decideInvitation,
  emailsOf,
  findInvitation,
  findPendingInvitation,
  listInvitations,
  listMembers,
  listOwnerMails,
  lockInvitation,
  lockMember,
  lockPendingInvitations,
  removeMembership,
  renewInvitation,
  setActiveAccount,
  setRole,
  resolveActiveAccount,
} from './members.ts'
export {
  type MembershipRow,
  type StatementRow,
  findOrganisationOf,
  isOrganisationManaged,
  linkOrganisation,
  listMemberships,
  listOrganisationMembers,
  listStatements,
  seat,
  stateOrganisations,
} from './organisations.ts'
export {
  type Holding,
  changeQuotas,
  findQuota,
  holdsQuotas,
  listQuotaHolders,
  listQuotas,
  openQuotas,
  recordQuotas,
  dryRunQuotas,
  releaseQuotas,
  takeQuotas,
  setQuotaLimit,
} from './quotas.ts'
export { listWithoutNamespace, noteAccountNamespace } from './namespaces.ts'
export { readStanding, requireStanding, requireVerifiedOwner } from './standing.ts'
export { proveAddress } from './unproven.ts'
